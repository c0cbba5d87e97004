// UpstreamFailure.swift -- why an upstream could not be asked or did not answer.
//
// Blame.swift says what follows from it.

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
    /// What the failure counts against.
    package var blame: Blame
    /// Whether the time expired, so that the failure says nothing about the name.
    package var isLate = false
    /// A human-readable remedy; empty if none is known.
    package var advice = ""
    /// The failure of each server that was asked, in order; empty if none was asked.
    package var steps: [String] = []
    /// Why a table has no addresses for the name; nil for every other failure.
    package var absence: TableAbsence?
    /// The reason as metrics and the counters of names know it; nil if there was no transfer.
    package var cause: TransferFailureCause?
    /// How strongly it speaks against the server or the account.
    var evidence = Evidence.certain
    /// The provider's reason for refusing the account; nil if it did not.
    var refusal: HTTPDNSFailure?
    /// Whether it is temporary (HTTP 5xx, a connection that was reset): the question gets a second chance.
    var isTemporary = false
    /// Whether the provider has logged it when it began to back off.
    package var isLogged = false
    /// Whether the server replied over HTTP, so that it is reachable.
    package var isReply = false

    fileprivate init(_ extendedError: ExtendedError, _ reason: String, _ blame: Blame) {
      self.extendedError = extendedError
      self.reason = reason
      self.blame = blame
      kind = reason
    }
  }

  @usableFromInline final class Box: Sendable {
    @usableFromInline let details: Details

    @usableFromInline init(_ details: Details) { self.details = details }
  }

  @usableFromInline var box: Box

  /// Creates a failure whose `kind` is its reason.
  package init(_ extendedError: ExtendedError, _ reason: String, _ blame: Blame) {
    self.init(Details(extendedError, reason, blame))
  }

  private init(_ details: Details) { box = Box(details) }

  /// One of the properties.
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

  /// Whether a table has no such name, so that the next upstream decides as if there were no table.
  package var isNotListed: Bool { self.absence == .notListed || self.absence == .switchedOff }

  /// Whether a reachable provider replied about the name, so that no other upstream is asked.
  package var isFinal: Bool { (self.blame == .question || self.blame == .answer) && !self.isLate }
  /// Whether LocalDNS may be asked instead of the provider.
  package var leadsToLocalDNS: Bool { self.blame.leadsToLocalDNS || self.isLate }
}

/// Why a table has no addresses for a name.
package enum TableAbsence: Sendable {
  /// The name is not listed.
  case notListed
  /// The table is switched off.
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
    // Our own pause, which the server requested earlier.
    let isOurs = failure.kind == .calm && !failure.wasSent
    var details = Details(
      failure.kind.extendedError, failure.description, isOurs ? .ourselves : failure.kind.blame)
    details.kind = failure.kind.rawValue
    details.cause = .noResponse(failure.kind)
    details.evidence = failure.kind.evidence
    details.isTemporary = failure.kind == .reset
    self.init(details)
  }

  /// The failure that a reply of the service reports.
  package init(_ failure: HTTPDNSFailure) {
    var details = Details(failure.extendedError, failure.description, failure.blame)
    details.cause = .noAnswer(failure.kind)
    details.evidence = .doubtful
    details.isReply = true
    if failure.blame == .account { details.refusal = failure }
    if case .server(let status) = failure {
      details.kind = "another HTTP status"
      details.isTemporary = status >= 500
    }
    self.init(details)
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
  package var isBogus: Bool { self.blame == .answer && ExtendedError.validation.contains(self.extendedError) }

  /// A table without addresses for the name. `detail` follows the reason.
  static func absent(_ absence: TableAbsence, _ detail: String = "") -> UpstreamFailure {
    let isLoaded = absence != .notLoaded
    var failure = UpstreamFailure(
      isLoaded ? .notSupported : .noReachableAuthority, absence.text + detail, isLoaded ? .question : .network)
    failure.absence = absence
    return failure
  }

  package static let unserved = UpstreamFailure(.notSupported, "no provider serves this type", .question)
  package static let unaskable = UpstreamFailure(
    .notSupported, "no provider takes a name with such characters", .question)
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
  package static let ending = UpstreamFailure(.notReady, "httpdnsd is shutting down", .ourselves)
  /// Our own limits prevented the transfer, and no other upstream may be asked.
  package static let limitedBefore = UpstreamFailure(.other, "one of our own limits", .ourselves)
  package static let failedLately = UpstreamFailure(.cachedError, "failed a moment ago", .ourselves)
  package static let ownProbe = UpstreamFailure(.other, "one of our own probes", .ourselves)
}
