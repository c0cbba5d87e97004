// SetRecord.swift -- what the loop knows of one set: its state, its counters, and what it has yet to say or to do.

import Configuration
import EventLoop

/// A set as `httpdnsd sets` and the metrics show it.
public struct SetStatus: Equatable, Sendable {
  public let name: FirewallSetName
  /// Nil while the set is missing or has not been looked at.
  public let description: SetDescription?
  /// Addresses that the set got or contained already, and those that it did not get.
  public let added: Int
  public let failed: Int
  /// Addresses of replies that did not wait any longer. Each also becomes an added or a failed one.
  public let late: Int
  /// Why the last addition failed, or why the next one will; nil if it will not.
  public let failure: SetFailure?

  /// `ok`, `waiting` before the kernel has replied, `missing`, `not permitted`, or another reason.
  public var state: String { failure?.description ?? (description == nil ? "waiting" : "ok") }
}

/// An event about a set for the log.
public enum SetNote: Equatable, Sendable, CustomStringConvertible {
  /// Addresses are not added. At most once a minute for each set.
  case failing(FirewallSetName, SetFailure)
  /// Addresses are added again, after a failure that was logged.
  case recovered(FirewallSetName)
  /// The set was emptied or created again, and gets all its addresses again.
  case lost(FirewallSetName)

  /// Whether an operator should look into it.
  public var isProblem: Bool {
    if case .failing = self { true } else { false }
  }

  /// One line for the log.
  public var description: String {
    switch self {
    case .failing(let set, let failure):
      "firewall set \(set) gets no addresses: \(failure)" + (failure.advice(for: set).map { "; \($0)" } ?? "")
    case .recovered(let set): "firewall set \(set) gets addresses again"
    case .lost(let set): "firewall set \(set) was emptied or created again; it gets all cached addresses again"
    }
  }
}

/// The loop's state of one set.
struct SetRecord {
  let name: FirewallSetName
  private(set) var description: SetDescription?
  private(set) var failure: SetFailure?
  private(set) var added = 0
  private(set) var failed = 0
  private(set) var late = 0
  /// Until when one of the addresses that were to be added is to be in the set.
  private(set) var usedUntil: BootInstant?
  /// Whether cached addresses are missing in the set: at the beginning, after failures, and when it was emptied.
  private var needsRefill = true
  /// Whether that is to be logged when it is done, which others may cause as often as they like.
  private var isLossUnlogged = false
  private var lastRefill: BootInstant?
  /// Whether the failure was of an addition and not of a look, which therefore cannot see that it has ended.
  private var isFailureOfAddition = false
  private var lastLogged: BootInstant?
  private var isFailureLogged = false

  /// Between two lines about failures of the set.
  private static let logPause = Duration.seconds(60)
  /// Between two refills that nothing but the set's state causes.
  private static let refillPause = Duration.seconds(10)

  init(_ name: FirewallSetName) { self.name = name }

  var status: SetStatus {
    SetStatus(
      name: name, description: description, added: added, failed: failed, late: late, failure: failure)
  }

  /// Whether neither the kernel's description nor a failure is known.
  var isUnknown: Bool { description == nil && failure == nil }

  /// How many of these addresses the set may accept, as far as is known.
  func fitting(_ addresses: [SetAddress]) -> Int {
    guard let description else { return addresses.count }
    return addresses.count { description.accepts($0.address) }
  }

  mutating func use(until end: BootInstant) { usedUntil = usedUntil.map { max($0, end) } ?? end }

  mutating func countLate(_ addresses: Int) { late += addresses }

  /// Handles what an addition or a look reports; returns what to log.
  mutating func handle(_ report: SetReport, isAddition: Bool, now: BootInstant) -> [SetNote] {
    added += report.added
    failed += report.failed
    if let found = report.description { description = found }
    if report.isLost {
      needsRefill = true
      isLossUnlogged = true
    }
    if let failure = report.failure {
      return fail(failure, isAddition: isAddition && report.description != nil, lost: report.failed, now: now)
    }
    guard failure != nil, !isFailureOfAddition || report.added > 0 else { return [] }
    failure = nil
    defer { isFailureLogged = false }
    return isFailureLogged ? [.recovered(name)] : []
  }

  /// Counts addresses that were not even tried; returns what to log.
  mutating func drop(_ addresses: Int, _ failure: SetFailure, now: BootInstant) -> [SetNote] {
    failed += addresses
    return fail(failure, isAddition: true, lost: addresses, now: now)
  }

  private mutating func fail(_ failure: SetFailure, isAddition: Bool, lost: Int, now: BootInstant) -> [SetNote] {
    self.failure = failure
    isFailureOfAddition = isAddition
    switch failure {
    case .missing, .missingTable, .otherKey, .map, .constant: description = nil
    default: break
    }
    // What does not fit into a full set would not fit in a refill either.
    if lost > 0, failure != .full { needsRefill = true }
    if let lastLogged, now - lastLogged < SetRecord.logPause { return [] }
    lastLogged = now
    isFailureLogged = true
    return [.failing(name, failure)]
  }

  /// What to log if the set is to be refilled now; nil if it is not.
  mutating func takeRefill(now: BootInstant) -> [SetNote]? {
    guard needsRefill, failure == nil, description != nil else { return nil }
    if let lastRefill, now - lastRefill < SetRecord.refillPause { return nil }
    needsRefill = false
    lastRefill = now
    defer { isLossUnlogged = false }
    return isLossUnlogged ? [.lost(name)] : []
  }
}
