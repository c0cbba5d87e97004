// FleetLookup.swift -- one lookup in the store: GET, SET NX for the lease, then polls while another daemon holds it.
//
// The engine does not know the providers' dialects: the caller checks the records of each value that is found, and
// accepts or rejects it. After a rejection the lookup goes on as if the store had no answer.

import Configuration
import EventLoop
import Store

/// A lookup for a client's question, or before a refresh. Resolver's loop only.
package struct FleetLookup {
  /// What the caller does next.
  package enum Step {
    /// Checks the records of another daemon's answer, then calls `accept`, or `reject` and `next`.
    case found(FoundValue)
    /// Asks the provider on behalf of all daemons, with the lease.
    case leads
    /// Looks up again later: another daemon holds the lease. Only before a refresh that may wait.
    case waits
    /// Asks the provider on its own behalf, without a lease.
    case alone
  }

  package enum Purpose {
    /// A client's question; polls while another daemon holds the lease.
    case query
    /// Looks for an answer that expires later than the cached one, and never polls.
    ///
    /// - Parameters:
    ///   - expiresAt: when the cached answer expires, in nanoseconds; nil if there is none.
    ///   - mayWait: whether the caller can wait for another daemon's refresh: `.waits` rather than `.alone`.
    case refresh(expiresAt: Int64?, mayWait: Bool)
  }

  private enum Stage { case value, lease, polls }

  /// By how much another daemon's answer must outlive the cached one to be adopted, in milliseconds. Covers the error
  /// of the estimated clocks.
  private static let youngerBy: Int64 = 1_000

  private let fleet: FleetLevel
  private let question: FleetQuestion
  private lazy var key = fleet.keys.answer(question)
  private let providerTimeout: Duration
  private let purpose: Purpose
  private var stage = Stage.value
  /// The time for which the lookup may still wait for the store.
  private var left: Duration
  /// How the first GET ended: the result, if no later GET finds a value.
  private var first = FleetResult.miss
  private var pauses: LeaseWait?

  /// - Parameter providerTimeout: the provider's timeout; the lease lasts a little longer.
  package init(of question: FleetQuestion, in fleet: FleetLevel, for purpose: Purpose, providerTimeout: Duration) {
    (self.fleet, self.question, self.purpose, self.providerTimeout) = (fleet, question, purpose, providerTimeout)
    left = fleet.settings.timeout
  }

  /// Returns the next value, or the end. Must not be called after the end.
  ///
  /// - Parameter median: the provider's median round trip, nil if unknown; only evaluated before polling.
  package mutating func next(median: @autoclosure () -> Duration? = nil) async -> Step {
    if stage == .value {
      stage = .lease
      if let step = await look() { return step }
    }
    if stage == .lease {
      stage = .polls
      if let step = await lease() { return step }
      pauses = LeaseWait(
        longest: fleet.settings.wait.nanoseconds, median: median()?.nanoseconds, random: fleet.jitter())
    }
    while let pause = pauses?.next() {
      await fleet.loop.sleep(for: .nanoseconds(pause))
      guard fleet.answers.isUsable else { break }
      switch await fleet.answers.get(key, question, &left) {
      case .value(let found): return .found(found)
      case .failed(let result): return alone(result)
      case .nothing, .rejected: continue
      }
    }
    fleet.tally.counters.leases.expired += 1
    return alone(first)
  }

  /// The first GET; nil if it finds nothing.
  private mutating func look() async -> Step? {
    fleet.loop.assertCurrent()
    fleet.presence.renewIfDue()
    guard fleet.answers.isUsable, let now = fleet.clock.time else {
      fleet.link.requestUse()
      return alone(.open)
    }
    var end = Int64.min
    if case .refresh(let expiresAt, _) = purpose {
      end = expiresAt.map { now + ($0 - fleet.loop.now.nanoseconds) / 1_000_000 + FleetLookup.youngerBy } ?? end
      fleet.units.readTotals()
    } else if fleet.answers.mayLook {
      fleet.units.readTotals()
    }
    switch await fleet.answers.get(key, question, &left) {
    case .value(let found) where found.value.expires > end:
      // Used if it is rejected.
      first = .rejected
      return .found(found)
    case .failed(let result): return alone(result)
    case .rejected: first = .rejected
    case .value, .nothing: break
    }
    return nil
  }

  /// Requests the lease; nil if another daemon holds it and its answer is awaited.
  private mutating func lease() async -> Step? {
    switch (await fleet.answers.lease(question, providerTimeout, &left), purpose) {
    case (.won, .query):
      fleet.tally.counters.count(first)
      fleet.tally.counters.leases.won += 1
      return .leads
    case (.won, .refresh):
      fleet.tally.counters.led += 1
      return .leads
    case (.lost, .query):
      fleet.tally.counters.leases.lost += 1
      return nil
    case (.lost, .refresh(_, let mayWait)): return mayWait ? .waits : alone(first)
    case (.none, .query):
      fleet.tally.counters.leases.failed += 1
      return alone(first)
    case (.none, .refresh): return alone(first)
    }
  }

  private func alone(_ result: FleetResult) -> Step {
    if case .query = purpose { fleet.tally.counters.count(result) } else { fleet.tally.counters.alone += 1 }
    return .alone
  }

  /// Counts the last found value as used.
  package func accept() {
    if case .query = purpose { fleet.tally.counters.count(.hit) } else { fleet.tally.counters.adopted += 1 }
  }

  /// Counts the last found value as rejected.
  package func reject(_ check: FleetRejection) { fleet.tally.counters.rejected[check, default: 0] += 1 }
}
