// Blame.swift -- whom a failure counts against, and what follows: the one table of both (docs/architecture.md, "Blame").

import DNSWire
import Glibc
import HTTPClient
import HTTPDNS
import LocalDNS

/// Whom a failure counts against.
package enum Blame: Hashable, CaseIterable, Sendable {
  /// The question: the provider replied that it does not serve this one, or it is late with this one alone.
  case question
  /// The answer: a reachable server replied, and what it said cannot be given to anybody.
  case answer
  /// The server: another one may do better.
  case server
  /// The account, its settings or its units: every server of the provider would say the same.
  case account
  /// The network between here and the server, or the plain resolvers that it hands out.
  case network
  /// Limits of ours: nothing was learned about anybody.
  case ourselves
}

extension Blame {
  /// Whether another server of the same provider may do better.
  var leadsToNextServer: Bool {
    switch self {
    case .server, .network: true
    case .question, .answer, .account, .ourselves: false
    }
  }

  /// Whether LocalDNS may be asked in the provider's place: not for what a reachable provider has said about a name, and not
  /// because of a limit of ours.
  var leadsToLocalDNS: Bool {
    switch self {
    case .server, .account, .network: true
    case .question, .answer, .ourselves: false
    }
  }

  /// Whether a question that failed so must wait before it is asked again (RFC 9520).
  package var isRemembered: Bool { self != .ourselves }

  /// Whether that wait ends when a provider is back.
  package var endsWithRecovery: Bool {
    switch self {
    case .server, .account, .network: true
    case .question, .answer, .ourselves: false
    }
  }
}

/// How much a failure says about a server or an account.
enum Evidence: Hashable, Sendable {
  /// No question can cause it: it counts at once.
  case certain
  /// A question may have caused it: it counts if a question that is known to be good fares alike.
  case doubtful
  /// The same, and the time is up.
  case late
}

/// Why one server gave no answer.
struct ServerFailure: Error {
  var failure: UpstreamFailure
  var evidence: Evidence
  /// What the provider refused us for; nil where it did not.
  var refusal: HTTPDNSFailure?
  /// Whether the server could not right now (HTTP 5xx, a connection that was cut off): it is tried once more.
  var isTemporary = false
  /// Whether the server has said it over HTTP, so that it was reached.
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

  /// What the client gets.
  fileprivate var extendedError: ExtendedError {
    switch self {
    case .tooLarge, .badHTTP: .invalidData
    case .busy, .internal, .cancelled, .badRequest: .other
    default: .networkError
    }
  }
}

extension HTTPDNSFailure {
  /// Each refusal of the account is doubtful: a service may refuse a single name in the same words.
  var blame: Blame {
    switch self {
    case .authentication, .expired, .account, .badParameter, .badPath, .quota: .account
    case .name, .unsupported: .question
    case .truncated: .answer
    case .server, .wrongQuestion: .server
    case .unreadable(let reason): reason.blame
    }
  }

  /// What the client gets.
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
  /// Whoever owns a zone decides on sizes, names, data and chains; what is no reply of the service at all is the server's.
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

/// Why nobody could be asked, or nobody answered.
package struct UpstreamFailure: Error, Sendable, Equatable {
  /// What to tell the client (RFC 8914).
  package var extendedError: ExtendedError
  /// One line for the log, without secrets and endpoint queries.
  package var reason: String
  /// What it is, without what the one who was asked can choose: failures of one kind share lines of the log.
  package var kind: String
  /// Whom it counts against.
  package var blame: Blame
  /// Whether nothing was said in time, so that nothing was said about the name.
  package var isLate = false
  /// What would help, for a person; empty where nothing is known.
  package var advice = ""
  /// What each server that was asked has said, in their order; empty where none was asked.
  package var steps: [String] = []

  /// A failure, its reason and whom it counts against.
  package init(_ extendedError: ExtendedError, _ reason: String, _ blame: Blame) {
    self.extendedError = extendedError
    self.reason = reason
    self.blame = blame
    kind = reason
  }

  /// The reason with what would help, for a person who has asked.
  package var explanation: String { advice.isEmpty ? reason : "\(reason); \(advice)" }
  /// What was asked and why it failed, a line for each server.
  package func trail(of name: String) -> [String] {
    guard !steps.isEmpty else { return ["\(name): \(explanation)"] }
    return steps.map { "\(name): \($0)" }
  }

  /// Whether a reachable provider has said this about the name: nobody else may say something better.
  package var isFinal: Bool { (blame == .question || blame == .answer) && !isLate }
  /// Whether LocalDNS may be asked in the provider's place.
  package var leadsToLocalDNS: Bool { blame.leadsToLocalDNS || isLate }
}

extension UpstreamFailure {
  init(_ failure: HTTPFailure) {
    self.init(failure.kind.extendedError, failure.description, failure.kind.blame)
    kind = failure.kind.rawValue
    // Our own pause, after the server has asked for one.
    if failure.kind == .calm, !failure.wasSent { blame = .ourselves }
  }

  /// - Parameter code: the service's own word for it, one of those that are known.
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

  /// A server has answered with another code than NOERROR and NXDOMAIN; the client gets the server's own reason.
  package static func refused(
    _ code: ResponseCode, by server: String?, _ extendedError: ExtendedError? = nil
  ) -> UpstreamFailure {
    var failure = UpstreamFailure(extendedError ?? .other, "\(server ?? "the server") answers \(code)", .answer)
    failure.kind = "another response code"
    return failure
  }

  /// Whether somebody who validates has found the data bogus (RFC 8914 sections 4.7 to 4.13): nobody who does not validate
  /// may be asked instead.
  package var isBogus: Bool { blame == .answer && ExtendedError.validation.contains(extendedError) }

  package static let unserved = UpstreamFailure(.notSupported, "no provider serves this type", .question)
  package static let unaskable = UpstreamFailure(
    .notSupported, "no provider takes a name with such characters", .question)
  package static let notListed = UpstreamFailure(.notSupported, "not in the table", .question)
  package static let noServer = UpstreamFailure(.noReachableAuthority, "no resolver to ask", .network)
  static let noTimeLeft = UpstreamFailure(.noReachableAuthority, "no time left", .network)
  /// Nobody has answered by the last moment.
  package static let noAnswerInTime = UpstreamFailure(.noReachableAuthority, "no answer in time", .network)
  package static let tooLong = UpstreamFailure(.invalidData, "the answer does not fit into a message", .answer)
  /// No certificate can be checked yet.
  package static let noTime = UpstreamFailure(
    .notReady, "the machine's clock is before the day of this program's build; not used until the time is known",
    .network)
  /// Nothing was learned about the question.
  package static let ending = UpstreamFailure(.notReady, "the program ends", .ourselves)
  /// The provider could not be asked, and nobody else may be.
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
