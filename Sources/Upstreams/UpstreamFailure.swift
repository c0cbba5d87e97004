// UpstreamFailure.swift -- why an upstream could not be asked or did not answer.
//
// Consequence.swift says what follows from it.

import DNSWire
import Glibc
import HTTPClient
import HTTPDNS
import LocalDNS

/// Why an upstream could not be asked or did not answer: the one type of failure from the transfer to the log, the metrics
/// and the counters of names.
///
/// A pointer to its properties: results that may be a failure are passed through many suspended functions, and nearly all
/// of them are answers.
@dynamicMemberLookup
package struct UpstreamFailure: Error, Sendable, Equatable {
  /// The properties of a failure.
  package struct Details: Sendable, Equatable {
    /// The extended error for the client (RFC 8914).
    package var extendedError: ExtendedError
    /// One line for the log, without secrets and without the query part of endpoints.
    package var reason: String
    /// The reason without any text that the server can choose. Failures of the same kind share a log line.
    package var kind: String
    /// Where the question goes.
    package var consequence: Consequence
    /// A human-readable remedy; empty if none is known.
    package var advice = ""
    /// The failure of each server that was asked, in order; empty if none was asked.
    package var steps: [String] = []
    /// Why a table has no addresses for the name; nil for every other failure.
    package var absence: TableAbsence?
    /// The reason as metrics and the counters of names know it; nil if there was no transfer.
    package var cause: TransferFailureCause?
    /// What the reply of the service reports; nil if there was no reply.
    package var report: HTTPDNSFailure?
    /// What the HTTP client reports; nil if there was a reply.
    var transport: HTTPFailure?
    /// Whether it is temporary (HTTP 5xx, a connection that was cut off): the question gets a second chance.
    var isTemporary = false
    /// Whether the provider has logged it when it began to pause.
    package var isLogged = false

    fileprivate init(_ extendedError: ExtendedError, _ reason: String, _ consequence: Consequence) {
      self.extendedError = extendedError
      self.reason = reason
      self.consequence = consequence
      kind = reason
    }
  }

  @usableFromInline final class Box: Sendable {
    @usableFromInline let details: Details

    @usableFromInline init(_ details: Details) { self.details = details }
  }

  @usableFromInline var box: Box

  /// `reason` is the `kind` too.
  package init(_ extendedError: ExtendedError, _ reason: String, _ consequence: Consequence) {
    self.init(Details(extendedError, reason, consequence))
  }

  private init(_ details: Details) { box = Box(details) }

  @inlinable
  package subscript<Value>(dynamicMember property: WritableKeyPath<Details, Value>) -> Value {
    get { box.details[keyPath: property] }
    set {
      var details = box.details
      details[keyPath: property] = newValue
      box = Box(details)
    }
  }

  package static func == (left: UpstreamFailure, right: UpstreamFailure) -> Bool {
    left.box === right.box || left.box.details == right.box.details
  }

  /// The reason with the remedy, human-readable.
  package var explanation: String { self.advice.isEmpty ? self.reason : "\(self.reason); \(self.advice)" }
  /// One step for each server that was asked.
  package func trail(of name: String) -> [TrailStep] {
    guard !self.steps.isEmpty else { return [TrailStep(name, explanation, self.absence)] }
    return self.steps.map { TrailStep(name, $0, self.absence) }
  }

  /// Whether the transfer made room for others, or its connections were closed here: no failure of the provider.
  var isCancelled: Bool { self.transport?.kind == .cancelled }

  /// Whether a table has no such name, so that the next upstream decides as if there were no table.
  package var isNotListed: Bool { self.absence == .notListed || self.absence == .switchedOff }
}

/// Why a table has no addresses for a name.
package enum TableAbsence: Sendable {
  /// The name is not listed.
  case notListed
  case switchedOff
  /// No table has been loaded yet.
  case notLoaded

  /// The reason, human-readable.
  package var text: String {
    switch self {
    case .notListed: "not in its table"
    case .switchedOff: "its table is switched off"
    case .notLoaded: "no table yet"
    }
  }
}

/// An upstream that gave no usable answer, and why.
package struct TrailStep: Sendable, Equatable, CustomStringConvertible {
  /// The name of the upstream, human-readable.
  package let upstream: String
  /// The reason, human-readable.
  package let reason: String
  /// Why a table has no addresses for the name; nil for every other reason.
  package let absence: TableAbsence?

  package init(_ upstream: String, _ reason: String, _ absence: TableAbsence? = nil) {
    self.upstream = upstream
    self.reason = reason
    self.absence = absence
  }

  package var description: String { "\(upstream): \(reason)" }
}

extension UpstreamFailure {
  init(_ failure: HTTPFailure) {
    var details = Details(failure.extendedError, failure.description, failure.consequence)
    details.kind = failure.kind.rawValue
    details.cause = .noResponse(failure.kind)
    details.transport = failure
    details.isTemporary = failure.kind == .reset
    self.init(details)
  }

  /// The failure that a reply of the service reports.
  package init(_ failure: HTTPDNSFailure) {
    var details = Details(failure.extendedError, failure.description, failure.consequence)
    details.cause = .noAnswer(failure.kind)
    details.report = failure
    if case .status(let status, _) = failure {
      details.kind = "another HTTP status"
      details.isTemporary = status >= 500 && !failure.isRefusal
    }
    self.init(details)
  }

  init(_ failure: LocalDNSFailure) {
    let consequence = failure.consequence
    switch failure {
    case .noServer: self = .noServer
    case .timedOut: self.init(.noReachableAuthority, "no answer in time", consequence)
    case .network(let code): self.init(.networkError, String(cString: strerror(code)), consequence)
    case .closed: self.init(.networkError, "the server closed the connection", consequence)
    case .responseCode(let code, let extendedError): self = .refused(code, by: nil, extendedError)
    case .referral: self.init(HTTPDNSFailure.unreadable(.referral))
    case .bareError(let code): self.init(.other, "the server answers \(code) without a question", consequence)
    case .truncated: self.init(.invalidData, "a truncated answer, and TCP gives no better one", consequence)
    case .unusable(.noResponse): self.init(.invalidData, "a reply that is no response", consequence)
    case .unusable(.otherQuestion): self.init(.invalidData, "a reply to another question", consequence)
    case .unusable(.content(let reason)): self.init(.invalidData, reason, consequence)
    case .unusable(.malformed): self.init(.invalidData, "a reply that breaks the rules of DNS", consequence)
    case .cancelled: self.init(.other, "cancelled", consequence)
    }
  }

  /// A server answered with a code other than NOERROR and NXDOMAIN. The client gets the server's extended error if it
  /// sent one.
  package static func refused(
    _ code: ResponseCode, by server: String?, _ extendedError: ExtendedError? = nil
  ) -> UpstreamFailure {
    var failure = UpstreamFailure(extendedError ?? .other, "\(server ?? "the server") answers \(code)", .verdict)
    failure.kind = "another response code"
    return failure
  }

  /// Whether a validating resolver found the data bogus (RFC 8914 sections 4.7 to 4.13). No upstream that does not
  /// validate may be asked instead.
  package var isBogus: Bool { self.consequence == .verdict && ExtendedError.validation.contains(self.extendedError) }

  /// A table without addresses for the name. `detail` follows the reason.
  static func absent(_ absence: TableAbsence, _ detail: String = "") -> UpstreamFailure {
    let error: ExtendedError = absence == .notLoaded ? .noReachableAuthority : .notSupported
    var failure = UpstreamFailure(error, absence.text + detail, .notAsked)
    failure.absence = absence
    return failure
  }

  package static let unserved = UpstreamFailure(.notSupported, "no provider serves this type", .verdict)
  /// Neither the provider's state nor the budget of refreshes allows a transfer now.
  package static let notRefreshed = UpstreamFailure(
    .other, "not refreshed now: no budget, or the provider pauses", .ours)
  package static let unaskable = UpstreamFailure(
    .notSupported, "no provider takes a name with such characters", .nextUpstream)
  package static let noServer = UpstreamFailure(.noReachableAuthority, "no resolver to ask", .notAsked)
  /// The reply to a request that was signed by a wrong clock has corrected the clock, and the request was not repeated.
  static let wrongTime = UpstreamFailure(
    .other, "signed by a wrong clock, which the reply has corrected", .nextUpstream)
  static let noTimeLeft = UpstreamFailure(.noReachableAuthority, "no time left", .notAsked)
  /// No upstream answered before the deadline.
  package static let noAnswerInTime = UpstreamFailure(.noReachableAuthority, "no answer in time", .nextUpstream)
  package static let tooLong = UpstreamFailure(.invalidData, "the answer does not fit into a message", .nextUpstream)
  /// Certificates cannot be checked yet.
  package static let noTime = UpstreamFailure(
    .notReady, "the machine's clock is before the day of this program's build; not used until the time is known",
    .notAsked)
  /// The daemon is stopping; the failure says nothing about the question.
  package static let ending = UpstreamFailure(.notReady, "httpdnsd is shutting down", .ours)
  /// One of our own limits prevented the transfer, so LocalDNS's answer does not count.
  package static let limitedBefore = UpstreamFailure(.other, "one of our own limits", .limit)
  /// A failure of a moment ago, because of which the question is not sent again yet (RFC 9520).
  package static func remembered(_ failure: UpstreamFailure) -> UpstreamFailure {
    UpstreamFailure(.cachedError, "failed a moment ago: \(failure.explanation)", .ours)
  }
  package static let ownProbe = UpstreamFailure(.other, "one of our own probes", .ours)
}

// MARK: - What clients are told (RFC 8914)

extension HTTPFailure {
  fileprivate var extendedError: ExtendedError {
    switch kind {
    case .tooLarge, .badHTTP: .invalidData
    case .busy, .internal, .cancelled, .badRequest: .other
    default: .networkError
    }
  }
}

extension HTTPDNSFailure {
  fileprivate var extendedError: ExtendedError {
    switch self {
    case .unreadable, .wrongQuestion, .truncated: .invalidData
    case .unsupported, .name: .notSupported
    case .fault: .noReachableAuthority
    case .status: isRefusal ? .other : .noReachableAuthority
    case .authentication, .expired, .account, .unsigned, .quota, .notListed, .oneNotListed, .unexplained: .other
    }
  }
}
