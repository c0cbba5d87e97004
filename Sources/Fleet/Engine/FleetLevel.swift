// FleetLevel.swift -- the shared cache: answers and leases that the daemons of a site share in a store.
//
// A miss of the own cache is looked up with GET. If the store has no answer, SET NX requests a lease. The daemon that
// gets it asks the provider and writes the answer; the others poll for that answer.
//
// The store is optional. A lookup waits at most `fleet.timeout` for the store, all commands together, and does not wait
// while the store is down. Without a usable answer the caller asks the provider. Resolver's loop only.

import DNSWire
import EventLoop
import Store
import Telemetry

/// The outcome of sending a flush to the other daemons.
package enum FlushReach: Hashable, Sendable {
  /// The number of other daemons (nil if unknown), and the number of those that cannot decrypt the flush because their
  /// secret is different; these are not part of the first number.
  case notified(Int?, strangers: Int = 0)
  /// Only this daemon's cache was flushed, for this reason.
  case failed(String)
}

/// Shares answers with the other daemons of a site.
package final class FleetLevel {
  package struct Settings: Sendable {
    /// Composes the names of keys, and seals values.
    package var keys: FleetKeys
    /// The longest time that a lookup waits for the store, all commands together (`fleet.timeout`).
    package var timeout = Duration.milliseconds(20)
    /// The longest time that a lookup waits for another daemon that holds the lease (`fleet.wait`).
    package var wait = Duration.milliseconds(150)
    /// Whether `units_per_day` limits the fleet rather than each daemon (`fleet.units`).
    package var sharesUnits = true

    /// The other members get the defaults of the configuration.
    package init(keys: FleetKeys) { self.keys = keys }
  }

  let loop: any Loop
  let link: any StoreLink
  var settings: Settings
  let tally = FleetTally()
  let clock: StoreClockSync
  package let follower: FlushFollower
  package let pacer: FlushPacer
  /// Called when the store was replaced or has lost its data. The owner must read the stream again from its start.
  package var onLoss: (() -> Void)?
  package let units: UnitCounter
  /// Returns a report with the state of the connections; nil once they are closed.
  package var describe: () -> FleetReport? = { nil }
  package let presence: Presence
  let member: FleetMember
  /// Identifies this daemon in its flushes and leases: 16 random octets.
  let identity: [UInt8]
  private let note: @Sendable (FleetNote) -> Void
  /// Returns a number from 0 to 1, so that daemons that wait for the same answer do not poll at the same time.
  var jitter: () -> Double = { .random(in: 0...1) }
  private var writes = WriteQueue()
  /// Writes in flight.
  private var writing = 0
  /// Commands in flight for which a lookup waits.
  private var looking = 0
  /// The leases that this daemon holds; true if the answer is in `writes`, so that the lease is released after the
  /// write.
  private var leases: [FleetQuestion: Bool] = [:]
  let writeTimer = OwnedTimer()

  /// The most commands in flight for lookups; further lookups go without the store. The link allows 256 commands in
  /// all.
  private static let mostLooking = 64
  /// The most writes in flight.
  private static let mostWriting = 64
  /// A lease lasts for the provider's timeout and this margin.
  private static let leaseMargin = Duration.milliseconds(500)
  /// Answers with a shorter lifetime are not shared, in seconds.
  private static let shortestLifetime: UInt32 = 2

  /// - Parameters:
  ///   - identity: 16 random octets.
  ///   - member: this daemon's entry in the list of daemons.
  ///   - ledger: this daemon's units that stores have counted before.
  ///   - note: called with each line for the log.
  package init(
    _ settings: Settings, over link: any StoreLink, on loop: any Loop, identity: [UInt8], member: FleetMember,
    ledger: FleetLedger = FleetLedger(), note: @escaping @Sendable (FleetNote) -> Void
  ) {
    self.settings = settings
    self.link = link
    self.loop = loop
    self.identity = identity
    self.member = member
    self.note = note
    clock = StoreClockSync(hasSecret: settings.keys.hasSecret, over: link, on: loop, note: note)
    pacer = FlushPacer(on: loop, clock: clock, tally: tally, note: note)
    follower = FlushFollower(
      settings.keys, over: link, on: loop, clock: clock, pacer: pacer, identity: identity, tally: tally, note: note)
    presence = Presence(member, settings.keys, over: link, on: loop, clock: clock, follower: follower)
    units = UnitCounter(settings, over: link, on: loop, clock: clock, identity: identity, ledger: ledger)
    units.onLoss = { [weak self] in self?.storeLostData() }
    clock.onEstimate = { [weak self] in self?.estimatedClock(steppedFrom: $0) }
  }

  var keys: FleetKeys { settings.keys }

  package var counters: FleetCounters { tally.counters }

  /// - Parameter isProblem: whether the operator must act.
  package func log(_ text: String, isProblem: Bool = true) { note(FleetNote(isProblem: isProblem, text: text)) }

  // MARK: Connections

  /// The connection is up. The store may be a different one than before, or may have lost its data.
  package func connected() {
    loop.assertCurrent()
    presence.restart()
    dropWrites()
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

  /// Cancels all timers and callbacks. The link is the caller's to close.
  package func close() {
    loop.assertCurrent()
    writeTimer.cancel()
    presence.close()
    pacer.close()
    // Tasks that wait for a reply hold this object longer than the connections live.
    (onLoss, describe) = (nil, { nil })
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

  // MARK: Lookups

  /// Whether values of the store may be used: the connection is up, all flushes are read, and the clock is known and
  /// valid. Measures the clock again if that is due.
  var isUsable: Bool {
    clock.measureIfDue()
    return link.isUp && follower.isCurrent && clock.time != nil && !clock.isRefused
  }

  /// Whether another command for which a lookup waits may be sent.
  var mayLook: Bool { looking < FleetLevel.mostLooking }

  /// Result of a GET.
  enum Reading {
    /// The value has passed every check but that of its records.
    case value(FoundValue)
    case nothing
    /// The value failed a check.
    case rejected
    case failed(FleetResult)
  }

  /// Reads and checks a value.
  ///
  /// - Parameter left: the time for which the lookup may still wait for the store; reduced by the round trip.
  func get(_ key: [UInt8], _ question: FleetQuestion, _ left: inout Duration) async -> Reading {
    switch await exchange(StoreCommand.get.words(key), &left) {
    case .success(.bulk(let octets)):
      // The stream's connection may have ended during the GET.
      guard isUsable, let now = clock.time else { return .failed(.open) }
      do throws(FleetRejection) {
        let value = try FleetValue(octets, for: key, keys, question: question, now: now)
        guard !follower.covers(question.name, stored: value.stored) else { throw .flushed }
        return .value(FoundValue(value, readAt: now))
      } catch {
        tally.counters.rejected[error, default: 0] += 1
        return .rejected
      }
    case .success(.null): return .nothing
    case .success: return .failed(.error)
    case .failure(let failure): return .failed(FleetResult(failure))
    }
  }

  enum Lease { case won, lost, none }

  /// Requests the lease with SET NX PX.
  func lease(_ question: FleetQuestion, _ providerTimeout: Duration, _ left: inout Duration) async -> Lease {
    guard link.mayWrite else { return .none }
    let time = (providerTimeout + FleetLevel.leaseMargin).nanoseconds / 1_000_000
    let words = StoreCommand.set.words(keys.lease(question), identity, "NX".utf8, "PX".utf8, "\(time)".utf8)
    switch await exchange(words, &left) {
    case .success(.status):
      leases[question] = false
      return .won
    case .success(.null): return .lost
    case .success, .failure: return .none
    }
  }

  /// Releases the lease, if this daemon holds it, unless an answer is queued: then it is released after the write. Call
  /// this when the provider was asked, whatever the outcome.
  package func releaseLease(_ question: FleetQuestion) {
    if leases[question] == false { release(question) }
  }

  /// Deletes the lease in the store, if this daemon holds it.
  private func release(_ question: FleetQuestion) {
    guard leases.removeValue(forKey: question) != nil, link.isUp else { return }
    link.post(StoreCommand.del.words(keys.lease(question)), nil)
  }

  /// Sends a command for which a lookup waits; reduces `left` by its round trip.
  private func exchange(_ words: [[UInt8]], _ left: inout Duration) async -> Result<RESPValue, StoreFailure> {
    guard left > .zero else { return .failure(.timeout) }
    guard mayLook else { return .failure(.tooManyWaiting) }
    looking += 1
    defer { looking -= 1 }
    let began = loop.preciseNow
    let result = await withCheckedContinuation { continuation in
      link.call(words, timeout: left) { continuation.resume(returning: $0) }
    }
    let took = loop.preciseNow - began
    left -= took
    if case .success = result { tally.counters.latency.observe(took) }
    return result
  }

  // MARK: Writing values

  /// Queues a provider's answer for the store. It is written in the next turn of the loop, after the clients got the
  /// answer.
  ///
  /// - Parameters:
  ///   - message: NOERROR or NXDOMAIN with the question, and with AD if the provider is trusted.
  ///   - scope: SCOPE PREFIX-LENGTH for the subnet of the question; nil for none.
  ///   - lifetime: for how long this daemon caches the answer, in seconds.
  ///   - sentAt: when the provider was asked; a flush after that covers the answer.
  package func publish(
    _ message: Message, scope: Int?, extendedError: ExtendedError?, to question: FleetQuestion,
    from provider: String, lifetime: UInt32, sentAt: BootInstant
  ) {
    guard lifetime >= FleetLevel.shortestLifetime, isUsable, scope ?? 0 <= question.subnet?.length ?? 0,
      let now = clock.time, let stored = clock.time(at: sentAt)
    else { return }
    guard link.mayWrite else { return tally.counters.failedWrites += 1 }
    let life = Int64(lifetime) * 1_000
    let value = FleetValue(
      message: message, scope: scope, extendedError: extendedError, stored: stored, expires: now + life,
      provider: provider)
    let key = keys.answer(question)
    guard let octets = value.octets(for: key, keys) else { return }
    if leases[question] != nil { leases[question] = true }
    for dropped in writes.add(WriteQueue.Write(question: question, key: key, value: octets, lifetime: life)) {
      release(dropped.question)
    }
    if !writeTimer.isSet { writeTimer.set(after: .zero, on: loop, for: self) { $0.write() } }
  }

  /// Writes queued values, as many as may be in flight.
  private func write() {
    while writing < FleetLevel.mostWriting, link.isUp, link.mayWrite, let next = writes.next() {
      writing += 1
      let words = StoreCommand.set.words(next.key, next.value, "PX".utf8, "\(next.lifetime)".utf8)
      link.post(words) { [weak self] result in
        guard let self else { return }
        writing -= 1
        if case .success = result { tally.counters.writes += 1 } else { tally.counters.failedWrites += 1 }
        write()
      }
      // Release the lease: daemons that wait now find the answer, since the SET was sent first.
      release(next.question)
    }
  }

  /// Drops the queued writes after an outage: they could replace newer values of other daemons.
  func dropWrites() {
    // Their leases are not deleted: they have expired, or will soon.
    for dropped in writes.removeAll() { leases[dropped.question] = nil }
  }

  /// Values that were dropped because the queue was full, or after an outage.
  var droppedWrites: UInt64 { writes.dropped }
}
