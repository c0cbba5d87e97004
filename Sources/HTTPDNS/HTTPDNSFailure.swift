// HTTPDNSFailure.swift -- why a reply gave no answer.

/// Why there is no answer. No case carries text of the provider's, so every one of them may be logged.
public enum HTTPDNSFailure: Error, Hashable, Sendable {
  /// The provider rejected the client's credentials or address: HTTP 401 or 403.
  case authentication
  /// The time of a signature had passed, or lay too far ahead: the clocks differ. Worth one retry with a corrected clock.
  case expired
  /// The account does not exist, is closed, or may not do this at all: its owner has to change something.
  case account
  /// The provider does not take this name.
  case name
  /// The provider did not accept how it was asked: HTTP 400 or another status of that class.
  case badParameter
  /// The provider does not know the path: HTTP 404.
  case badPath
  /// Too many requests: HTTP 429, with the time to stay away where the provider gave one.
  case quota(retryAfter: Duration?)
  /// The server could not, or sent us elsewhere (redirects are never followed): the HTTP status.
  case server(status: Int)
  /// The body is not what the dialect defines.
  case unreadable(UnreadableReason)
  /// The reply answers another question, or the same one for another subnet.
  case wrongQuestion
  /// TC is set: what came is not the whole answer (RFC 2181 section 9).
  case truncated
  /// RDATA in a form that cannot be read without guessing: this provider cannot serve the type.
  case unsupported
}

/// What is wrong with a body.
public enum UnreadableReason: Hashable, CaseIterable, Sendable {
  /// Larger than the dialect's limit.
  case tooLarge
  /// A `Content-Type` that the dialect does not have, such as a captive portal's HTML.
  case mediaType
  /// Not JSON: broken syntax, invalid UTF-8, a NUL character, a number out of range, the same member twice.
  case syntax
  /// JSON nested more deeply than any answer is.
  case nesting
  /// JSON of another shape: a member is missing or has another type.
  case shape
  /// A number that its field cannot hold.
  case number
  /// A domain name that is none.
  case name
  /// Data of a type whose text has one form everywhere, in another form.
  case rdata
  /// Not a DNS message, or not a response.
  case message
  /// Ciphertext that the key does not decrypt, or text that stands for no ciphertext.
  case cipher
  /// A CNAME chain with a loop, a fork, a gap or too many links.
  case chain
  /// Records and response code that exclude each other.
  case contradiction
  /// No data, and the names of other servers that may have it: nothing is said of the question.
  case referral
}

extension UnreadableReason {
  /// For people.
  var text: String {
    switch self {
    case .tooLarge: "larger than allowed"
    case .mediaType: "of another media type; is it the page of a portal?"
    case .syntax: "not JSON, or not all of it"
    case .nesting: "JSON nested too deeply"
    case .shape: "JSON with members missing, or of another type"
    case .number: "a number out of range"
    case .name: "not a domain name where one has to be"
    case .rdata: "not addresses or other data where they have to be"
    case .message: "not a DNS response"
    case .cipher: "not encrypted with the key of the configuration"
    case .chain: "a CNAME chain with a loop, a fork or a gap"
    case .contradiction: "records and response code exclude each other"
    case .referral: "a referral to other servers, not an answer"
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
    case .name: "the provider does not take the name"
    case .badParameter: "the provider refused the parameters"
    case .badPath: "the provider does not know the path"
    case .quota: "the provider's quota is used up"
    case .server(let status): "HTTP status \(status)"
    case .unreadable(let reason): "unreadable, \(reason.text)"
    case .wrongQuestion: "the reply is to another question"
    case .truncated: "the reply is truncated"
    case .unsupported: "RDATA in an unknown form"
    }
  }
}
