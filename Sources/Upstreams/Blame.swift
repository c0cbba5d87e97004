// Blame.swift -- what a failure counts against and what follows from that; docs/architecture.md, "Blame", has the
// table.

import DNSWire
import Glibc
import HTTPClient
import HTTPDNS
import LocalDNS

/// What a failure counts against.
package enum Blame: Hashable, CaseIterable, Sendable {
  /// The question: the provider replied that it does not serve this question, or is late with this one only.
  case question
  /// The answer: a reachable server replied, but its answer cannot be returned to a client.
  case answer
  /// The server: another server may succeed.
  case server
  /// The account, its settings or its units: every server of the provider would reply the same.
  case account
  /// The network on the way to the server, or the plain resolvers that it announces.
  case network
  /// Our own limits: the failure says nothing about the provider.
  case ourselves
}

extension Blame {
  /// Whether another server of the same provider may succeed.
  var leadsToNextServer: Bool {
    switch self {
    case .server, .network: true
    case .question, .answer, .account, .ourselves: false
    }
  }

  /// Whether LocalDNS may be asked instead. Not after a reachable provider has replied about a name, and not because of
  /// our own limits.
  var leadsToLocalDNS: Bool {
    switch self {
    case .server, .account, .network: true
    case .question, .answer, .ourselves: false
    }
  }

  /// Whether the failure is cached, so that the question is not sent again at once (RFC 9520).
  package var isRemembered: Bool { self != .ourselves }

  /// Whether the cached failure ends when a provider recovers.
  package var endsWithRecovery: Bool {
    switch self {
    case .server, .account, .network: true
    case .question, .answer, .ourselves: false
    }
  }
}

/// How strongly a failure speaks against a server or an account.
enum Evidence: Hashable, Sendable {
  /// No question can cause it: it counts at once.
  case certain
  /// The question may have caused it: it counts if a question known to be good fails as well.
  case doubtful
  /// Doubtful as well: the timeout expired.
  case late
}

/// The failure of one attempt at one server.
struct ServerFailure: Error {
  var failure: UpstreamFailure
  var evidence: Evidence
  /// The provider's reason for refusing the account; nil if it did not.
  var refusal: HTTPDNSFailure?
  /// Whether the failure is temporary (HTTP 5xx, a connection that was reset): the question gets a second chance.
  var isTemporary = false
  /// Whether the server replied over HTTP, so that it is reachable.
  var isReply = false
}

extension HTTPFailure.Kind {
  var blame: Blame {
    switch self {
    case .timeout, .refused, .certificate, .pin, .tls, .reset, .calm, .badHTTP: .server
    case .unreachable, .proxy: .network
    case .tooLarge: .answer
    case .badRequest: .question
    case .busy, .cancelled, .internal: .ourselves
    }
  }

  var evidence: Evidence {
    switch self {
    case .timeout: .late
    case .reset, .calm, .badHTTP, .tooLarge, .badRequest: .doubtful
    case .refused, .certificate, .pin, .tls, .unreachable, .proxy, .busy, .cancelled, .internal: .certain
    }
  }

  /// The extended error for the client.
  fileprivate var extendedError: ExtendedError {
    switch self {
    case .tooLarge, .badHTTP: .invalidData
    case .busy, .internal, .cancelled, .badRequest: .other
    default: .networkError
    }
  }
}

extension HTTPDNSFailure {
  /// Every refusal of the account is doubtful: a service may refuse a single name with the same code.
  var blame: Blame {
    switch self {
    case .authentication, .expired, .account, .badParameter, .badPath, .quota: .account
    case .name, .unsupported: .question
    case .truncated: .answer
    case .server, .wrongQuestion: .server
    case .unreadable(let reason): reason.blame
    }
  }

  /// The extended error for the client.
  fileprivate var extendedError: ExtendedError {
    switch self {
    case .unreadable, .wrongQuestion, .truncated: .invalidData
    case .unsupported, .name: .notSupported
    case .server: .noReachableAuthority
    case .authentication, .expired, .account, .badParameter, .badPath, .quota: .other
    }
  }
}

extension UnreadableReason {
  /// The owner of a zone controls sizes, names, data and chains. A body that is not a reply of the service counts
  /// against the server.
  var blame: Blame {
    switch self {
    case .tooLarge, .number, .name, .rdata, .chain, .contradiction, .referral: .answer
    case .mediaType, .syntax, .nesting, .shape, .message, .cipher: .server
    }
  }
}

extension LocalDNSFailure {
  var blame: Blame {
    switch self {
    case .responseCode, .referral: .answer
    case .cancelled: .ourselves
    case .noServer, .timedOut, .closed, .network: isOwnLimit ? .ourselves : .network
    }
  }
}

/// Why an upstream could not be asked or did not answer.
package struct UpstreamFailure: Error, Sendable, Equatable {
  /// The extended error for the client (RFC 8914).
  package var extendedError: ExtendedError
  /// One line for the log, without secrets and without the query part of endpoints.
  package var reason: String
  /// The reason without any text that the server can choose. Failures of the same kind share a log line.
  package var kind: String
  /// What the failure counts against.
  package var blame: Blame
  /// Whether the time expired, so that the failure says nothing about the name.
  package var isLate = false
  /// A human-readable remedy; empty if none is known.
  package var advice = ""
  /// The failure of each server that was asked, in order; empty if none was asked.
  package var steps: [String] = []

  /// Creates a failure whose `kind` is its reason.
  package init(_ extendedError: ExtendedError, _ reason: String, _ blame: Blame) {
    self.extendedError = extendedError
    self.reason = reason
    self.blame = blame
    kind = reason
  }

  /// The reason with the remedy, human-readable.
  package var explanation: String { advice.isEmpty ? reason : "\(reason); \(advice)" }
  /// One line per server: what was asked and why it failed.
  package func trail(of name: String) -> [String] {
    guard !steps.isEmpty else { return ["\(name): \(explanation)"] }
    return steps.map { "\(name): \($0)" }
  }

  /// Whether a reachable provider replied about the name, so that no other upstream is asked.
  package var isFinal: Bool { (blame == .question || blame == .answer) && !isLate }
  /// Whether LocalDNS may be asked instead of the provider.
  package var leadsToLocalDNS: Bool { blame.leadsToLocalDNS || isLate }
}

extension UpstreamFailure {
  init(_ failure: HTTPFailure) {
    self.init(failure.kind.extendedError, failure.description, failure.kind.blame)
    kind = failure.kind.rawValue
    // Our own pause, which the server requested earlier.
    if failure.kind == .calm, !failure.wasSent { blame = .ourselves }
  }

  /// - Parameter code: the service's own error code, if it is a known one.
  init(_ failure: HTTPDNSFailure, code: String? = nil) {
    self.init(failure.extendedError, failure.description, failure.blame)
    if let code { reason += " (\(code))" }
    if failure.blame == .account { advice = failure.remedy }
    if case .server = failure { kind = "another HTTP status" }
  }

  init(_ failure: LocalDNSFailure) {
    switch failure {
    case .noServer: self = .noServer
    case .timedOut: self.init(.noReachableAuthority, "no answer in time", failure.blame)
    case .network(let code): self.init(.networkError, String(cString: strerror(code)), failure.blame)
    case .closed: self.init(.networkError, "the server closed the connection", failure.blame)
    case .responseCode(let code, let extendedError): self = .refused(code, by: nil, extendedError)
    case .referral: self.init(HTTPDNSFailure.unreadable(.referral))
    case .cancelled: self.init(.other, "cancelled", failure.blame)
    }
  }

  /// A server answered with a code other than NOERROR and NXDOMAIN. The client gets the server's extended error if it
  /// sent one.
  package static func refused(
    _ code: ResponseCode, by server: String?, _ extendedError: ExtendedError? = nil
  ) -> UpstreamFailure {
    var failure = UpstreamFailure(extendedError ?? .other, "\(server ?? "the server") answers \(code)", .answer)
    failure.kind = "another response code"
    return failure
  }

  /// Whether a validating resolver found the data bogus (RFC 8914 sections 4.7 to 4.13). No upstream that does not
  /// validate may be asked instead.
  package var isBogus: Bool { blame == .answer && ExtendedError.validation.contains(extendedError) }

  package static let unserved = UpstreamFailure(.notSupported, "no provider serves this type", .question)
  package static let unaskable = UpstreamFailure(
    .notSupported, "no provider takes a name with such characters", .question)
  package static let notListed = UpstreamFailure(.notSupported, "not in the table", .question)
  package static let noServer = UpstreamFailure(.noReachableAuthority, "no resolver to ask", .network)
  static let noTimeLeft = UpstreamFailure(.noReachableAuthority, "no time left", .network)
  /// No upstream answered before the deadline.
  package static let noAnswerInTime = UpstreamFailure(.noReachableAuthority, "no answer in time", .network)
  package static let tooLong = UpstreamFailure(.invalidData, "the answer does not fit into a message", .answer)
  /// Certificates cannot be checked yet.
  package static let noTime = UpstreamFailure(
    .notReady, "the machine's clock is before the day of this program's build; not used until the time is known",
    .network)
  /// The daemon is stopping; the failure says nothing about the question.
  package static let ending = UpstreamFailure(.notReady, "the program ends", .ourselves)
  /// Our own limits prevented the transfer, and no other upstream may be asked.
  package static let limitedBefore = UpstreamFailure(.other, "a limit of ours", .ourselves)
  package static let failedLately = UpstreamFailure(.cachedError, "failed a moment ago", .ourselves)
  package static let ownProbe = UpstreamFailure(.other, "one of our own probes", .ourselves)
}

extension ServerFailure {
  init(_ failure: HTTPFailure) {
    self.init(failure: UpstreamFailure(failure), evidence: failure.kind.evidence)
    isTemporary = failure.kind == .reset
  }

  init(_ failure: HTTPDNSFailure, code: String? = nil) {
    let blame = failure.blame
    self.init(
      failure: UpstreamFailure(failure, code: code), evidence: .doubtful, refusal: blame == .account ? failure : nil)
    if case .server(let status) = failure { isTemporary = status >= 500 }
    isReply = true
  }
}
