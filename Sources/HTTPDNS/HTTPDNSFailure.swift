// HTTPDNSFailure.swift -- the reasons why a reply has no usable answer.

import DNSWire

/// The reason why there is no answer. No case contains text of the provider, so every case is safe to log.
public enum HTTPDNSFailure: Error, Hashable, Sendable {
  /// The service's own error code for a wrong signature or key.
  case authentication
  /// The service's own error code for the time in a signature, which is in the past or too far ahead: the clocks differ.
  /// One retry with a corrected clock is useful.
  case expired
  /// The service's own error code for an account that does not exist, is closed, or lacks the permission. Its owner has to
  /// change something.
  case account
  /// The service's own error code for an account that accepts signed requests only; this one was not signed.
  case unsigned
  /// The service's own error code for too many requests or a used-up quota.
  case quota
  /// The service's own error code for a fault of this server.
  case fault
  /// The provider does not accept this name.
  case name
  /// The service refuses in the way in which it refuses names that the account does not list, a wrong key and an old signature.
  /// After one retry with a corrected clock it counts as an empty answer, unless `fallback_on_empty` is off.
  case notListed
  /// The account does not list one of several names.
  case oneNotListed
  /// The service refuses with a code that its documents do not explain: a matter of the name, until more is known. One retry
  /// with a corrected clock is useful.
  case unexplained
  /// Any HTTP status but success, without an error code of the service, and its `Retry-After` if it sent one. Redirects are
  /// never followed.
  case status(Int, retryAfter: Duration? = nil)
  /// The body does not have the form that the dialect defines.
  case unreadable(UnreadableReason)
  /// The reply answers another question, or the same question for another subnet.
  case wrongQuestion
  /// TC is set: the answer is incomplete (RFC 2181 section 9).
  case truncated
  /// RDATA in a form that cannot be read without guessing: this provider cannot serve the type.
  case unsupported
}

extension HTTPDNSFailure {
  /// The failures by what an operator can do about them. The raw values are labels of the metrics and of JSON.
  public enum Kind: String, Hashable, CaseIterable, Sendable {
    case authentication, expired, account, name
    case badParameter = "bad_parameter"
    case badPath = "bad_path"
    case quota
    case server = "status"
    case unreadable
    case wrongQuestion = "wrong_question"
    case truncated, unsupported
  }

  public var kind: Kind {
    switch self {
    case .authentication, .status(401, _), .status(403, _): .authentication
    case .expired: .expired
    case .account, .unsigned: .account
    case .name, .notListed, .oneNotListed, .unexplained: .name
    case .status(404, _): .badPath
    case .quota, .status(429, _): .quota
    case .status where isRefusal: .badParameter
    case .fault, .status: .server
    case .unreadable: .unreadable
    case .wrongQuestion: .wrongQuestion
    case .truncated: .truncated
    case .unsupported: .unsupported
    }
  }

  /// Whether the status refuses the request: every server of the provider would. Not so if the server gave up waiting
  /// (408) or the request was meant for another server (421). 501 refers to the method.
  public var isRefusal: Bool {
    guard case .status(let status, _) = self else { return false }
    return (400...499).contains(status) && status != 408 && status != 421 || status == 501
  }

  /// Whether the service refuses the account in its own words, which no name can provoke.
  public var isOfAccount: Bool {
    switch self {
    case .authentication, .expired, .account, .unsigned, .quota: true
    default: false
    }
  }

  /// Whether the refusal may concern the name or the account, which the service does not say.
  public var isUndecided: Bool { self == .notListed || self == .unexplained }

  /// Whether one of several names may be the reason, so that the others may be served without it.
  public var mayConcernOneName: Bool { isUndecided || self == .oneNotListed }
}

/// What is wrong with a body.
public enum UnreadableReason: Hashable, Sendable {
  /// Larger than the dialect's limit.
  case tooLarge
  /// A `Content-Type` that the dialect does not accept, such as HTML from a captive portal.
  case mediaType
  /// A page of HTML, such as that of a captive portal, where the dialect accepts any `Content-Type`.
  case page
  /// Not JSON: broken syntax, invalid UTF-8, a NUL character, a number out of range, or a duplicate member. Of a
  /// service with plain text: not its text.
  case syntax
  /// JSON nested more deeply than any answer.
  case nesting
  /// JSON of another shape: this member is missing or has a value that it cannot have. The path of the member, such as
  /// `Answer[].data`, is the dialect's and never the provider's text.
  case shape(String)
  /// A number that does not fit its field.
  case number
  /// A string that is not a domain name.
  case name
  /// Wrong data of a type that has only one textual form.
  case rdata
  /// Not a DNS message, or not a response.
  case message
  /// Ciphertext that the key does not decrypt, or text that does not encode ciphertext.
  case cipher
  /// A CNAME chain with a loop, a gap or too many links.
  case chain
  /// No data, but the names of other servers that may have it: the reply does not answer the question.
  case referral
  /// A list of the provider's servers without one that can be used, and its response code.
  case noServers(ResponseCode)
}

extension UnreadableReason {
  /// Human-readable text for logs.
  var text: String {
    switch self {
    case .tooLarge: "larger than allowed"
    case .mediaType: "another media type; is it the page of a portal?"
    case .page: "an HTML page; is it that of a portal?"
    case .syntax: "not in the form of the service, or cut off"
    case .nesting: "JSON nested too deeply"
    case .shape(let member): "JSON in which \(member) is missing or is not what it has to be"
    case .number: "a number out of range"
    case .name: "not a domain name where one has to be"
    case .rdata: "not addresses or other data where they have to be"
    case .message: "not a DNS response"
    case .cipher: "not encrypted with the key of the configuration"
    case .chain: "a CNAME chain with a loop or a gap"
    case .referral: "a referral to other servers, not an answer"
    case .noServers(.noError): "the list has no server"
    case .noServers(let code): "the list has no server (\(code))"
    }
  }
}

extension HTTPDNSFailure: CustomStringConvertible {
  /// One short line for logs.
  public var description: String {
    switch self {
    case .authentication: "the provider refused the credentials"
    case .expired: "the provider says that the signature has expired"
    case .account: "the provider does not serve this account"
    case .unsigned: "the provider serves this account with signed requests only"
    case .quota: "too many requests"
    case .fault: "the server reports a fault of its own"
    case .name: "the provider does not take the name"
    case .notListed: "the provider does not list the name, or refuses the signature"
    case .oneNotListed: "the provider does not list one of the names"
    case .unexplained: "the provider refuses for a reason of its own"
    case .status(let status, _): statusText.map { "\($0) (HTTP status \(status))" } ?? "HTTP status \(status)"
    case .unreadable(let reason): "unreadable: \(reason.text)"
    case .wrongQuestion: "the reply is to another question"
    case .truncated: "the reply is truncated"
    case .unsupported: "RDATA in an unknown form"
    }
  }
  /// What a bare HTTP status says; nil if it is a fault of the server.
  private var statusText: String? {
    switch kind {
    case .authentication: "the provider refused the credentials"
    case .badPath: "the provider does not know the path"
    case .badParameter: "the provider refused the parameters"
    case .quota: "too many requests"
    default: nil
    }
  }
}
