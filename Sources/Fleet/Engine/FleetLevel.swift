// FleetLevel.swift -- the shared cache: joins what the daemons of a site share in a store.
//
// The problem: many daemons ask the provider for the same names, and each transfer is billed. The obvious way, a cache
// server that answers each query, makes every client wait for, and depend on, one more machine. So the store is
// optional. Only a miss of the daemon's own cache, or a refresh, asks it (`FleetLookup`):
//
//   GET         another daemon's answer, if there is one
//   SET NX PX   otherwise the lease; the daemon that gets it asks the provider and writes the answer
//   GET ...     the others poll for that answer
//
// Whatever fails on the way, the caller asks the provider. A lookup waits at most `fleet.timeout` for the store, all
// commands together, and `fleet.wait` for the daemon with the lease; it does not wait while the store is down.
//
// The store may be slow, may lie, and may lose its data. So a value is used only if it is younger than its lifetime by
// the store's clock, if no flush covers it, and, with a secret, if a daemon of this site has sealed it. Each part has
// private state:
//
//   StoreClockSync   the store's clock: the age of everything that is shared
//   FlushPacer       flushes this daemon's cache, in paced passes
//   FlushFollower    which values are flushed
//   Presence         the list of daemons
//   AnswerExchange   answers and leases
//   UnitCounter      billing units, and the epoch of the store's data
//
// A part uses only parts above it. What concerns several parts goes through this
// type: a new connection, a new estimate of the clock, a loss of the store's data.
//
// Bounds: 64 commands of lookups, 64 writes in flight, 1,024 values or 1 MiB to be written. Resolver's loop only.

import Configuration
import EventLoop
import Store

/// The outcome of sending a flush to the other daemons.
package enum FlushReach: Hashable, Sendable {
  /// The number of other daemons that can read the flush (nil if unknown), and the number of those that cannot decrypt it
  /// because their secret is different.
  case notified(Int?, strangers: Int = 0)
  /// Only this daemon's cache was flushed, for this reason.
  case failed(String)
}

/// Shares answers, flushes and billing units with the other daemons of a site.
package final class FleetLevel {
  let loop: any Loop
  let link: any StoreLink
  /// Composes the names of keys, and seals values.
  let keys: FleetKeys
  let settings: Configuration.Fleet
  let member: FleetMember
  let clock: StoreClockSync
  package let follower: FlushFollower
  package let presence: Presence
  package let answers: AnswerExchange
  package let units: UnitCounter
  package let pacer: FlushPacer
  let tally = FleetTally()
  private let note: @Sendable (FleetNote) -> Void
  /// Returns a number from 0 to 1, so that daemons that wait for the same answer do not poll at the same time.
  var jitter: () -> Double = { .random(in: 0...1) }
  /// Called when the store was replaced or has lost its data. The owner must read the stream again from its start.
  package var onLoss: (() -> Void)?
  /// Returns a report with the state of the connections; nil once they are closed.
  package var describe: () -> FleetReport? = { nil }

  /// - Parameters:
  ///   - identity: identifies this daemon in its flushes and leases: 16 random octets.
  ///   - member: this daemon's entry in the list of daemons.
  ///   - ledger: this daemon's units that stores have counted before.
  ///   - note: called with each line for the log.
  package init(
    _ keys: FleetKeys, _ settings: Configuration.Fleet, over link: any StoreLink, on loop: any Loop, identity: [UInt8],
    member: FleetMember,
    ledger: FleetLedger = FleetLedger(), note: @escaping @Sendable (FleetNote) -> Void
  ) {
    (self.settings, self.link, self.loop, self.member, self.note) = (settings, link, loop, member, note)
    self.keys = keys
    clock = StoreClockSync(hasSecret: keys.hasSecret, over: link, on: loop, note: note)
    pacer = FlushPacer(on: loop, clock: clock, tally: tally, note: note)
    follower = FlushFollower(
      keys, over: link, on: loop, clock: clock, pacer: pacer, identity: identity, tally: tally, note: note)
    presence = Presence(member, keys, over: link, on: loop, clock: clock, follower: follower)
    answers = AnswerExchange(
      keys, over: link, on: loop, clock: clock, follower: follower, identity: identity, tally: tally)
    units = UnitCounter(
      keys, isShared: settings.units, over: link, on: loop, clock: clock, identity: identity, ledger: ledger)
    clock.onEstimate = { [weak self] in self?.estimatedClock(steppedFrom: $0) }
    units.onLoss = { [weak self] in self?.storeLostData() }
  }

  package var counters: FleetCounters { tally.counters }

  /// - Parameter isProblem: whether the operator must act.
  package func log(_ text: String, isProblem: Bool = true) { note(FleetNote(isProblem: isProblem, text: text)) }

  /// The state, without the members.
  package var report: FleetReport {
    loop.assertCurrent()
    let unknown = FleetReport(
      store: StoreReport(state: "no longer used", isUp: link.isUp, since: loop.now), own: member)
    var report = describe() ?? unknown
    (report.memberCount, report.knowsFlushes) = (presence.memberCount, follower.isCurrent)
    (report.counters, report.droppedWrites) = (counters, answers.droppedWrites)
    (report.clockDifference, report.isClockRefused) = (clock.difference, clock.isRefused)
    (report.hasSecret, report.sharesUnits) = (keys.hasSecret, settings.units)
    return report
  }

  /// Cancels all timers and callbacks. The link is the caller's to close.
  package func close() {
    loop.assertCurrent()
    pacer.close()
    presence.close()
    answers.close()
    // Tasks that wait for a reply hold this object longer than the connections live.
    (onLoss, describe) = (nil, { nil })
  }

  // MARK: Events that concern several parts

  /// The connection is up. The store may be a different one than before, or may have lost its data.
  package func connected() {
    loop.assertCurrent()
    presence.restart()
    answers.dropWrites()
    clock.restart()
    units.connected()
  }

  /// The machine was suspended: the estimate of the store's clock may be wrong and is measured again.
  package func hasSlept() {
    loop.assertCurrent()
    clock.restart()
  }

  private func estimatedClock(steppedFrom: Int64?) {
    if let steppedFrom {
      follower.ignoreValues(until: steppedFrom)
      presence.leaveMark(of: steppedFrom)
    }
    // Sends the lookup of marks before any GET. Replies come in the order of their commands, so the marks are known
    // before a value is used.
    presence.begin()
  }

  /// The store was replaced or has lost its data.
  private func storeLostData() {
    tally.counters.losses += 1
    follower.restart()
    // The list of daemons is lost as well.
    presence.restart()
    presence.begin()
    // While the link is down there is nothing to do: the next connection reads the stream from its start.
    if link.isUp { onLoss?() }
  }

  // MARK: Flushes

  /// Adds a flush to the stream, then counts the daemons that read it. Each of the commands times out after 1 s.
  package func announce(_ names: FlushedNames) async -> FlushReach {
    loop.assertCurrent()
    link.requestUse()
    guard clock.time != nil else { return .failed("the store is \(report.state)") }
    switch await follower.announce(names) {
    case nil: break
    case .error(let text): return .failed("the store refused the flush: \(text)")
    case .timeout: return .failed("no reply from the store within 1 s; it may have accepted the flush")
    case _ where link.isUp: return .failed("no reply from the store; it may have accepted the flush")
    default: return .failed("the store is \(report.state)")
    }
    guard let others = await presence.members()?.filter({ $0.member.id != member.id }) else { return .notified(nil) }
    let strangers = others.count { $0.member.difference(from: member) == .secret }
    return .notified(others.count - strangers, strangers: strangers)
  }
}
