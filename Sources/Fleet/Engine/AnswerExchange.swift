// AnswerExchange.swift -- reads, writes and leases answers in the store.
//
// A daemon holds the lease of a question from SET NX until its answer is written or cannot be shared. A lease is
// advisory: losing it costs one transfer. Answers are written after the clients got them, in order; what is still
// queued after an outage is dropped, since it could replace newer answers. Resolver's loop only.

import DNSWire
import EventLoop
import Store
import Telemetry

/// Sends the commands of lookups, and writes answers.
package final class AnswerExchange {
  private let loop: any Loop
  private let link: any StoreLink
  private let clock: StoreClockSync
  private let follower: FlushFollower
  private let keys: FleetKeys
  private let identity: [UInt8]
  private let tally: FleetTally
  /// Commands in flight for which a lookup waits.
  private var looking = 0
  /// The leases that this daemon holds; true if the answer is in `writes`, so that the lease is released after the
  /// write.
  private var leases: [FleetQuestion: Bool] = [:]
  private var writes = WriteQueue()
  /// Writes in flight.
  private var writing = 0
  private let writeTimer = OwnedTimer()

  /// The most commands in flight for lookups; further lookups go without the store. The link allows 256 commands in
  /// all.
  private static let mostLooking = 64
  /// The most writes in flight.
  private static let mostWriting = 64
  /// A lease lasts for the provider's timeout and this margin.
  private static let leaseMargin = Duration.milliseconds(500)
  /// Answers with a shorter lifetime are not shared, in seconds.
  private static let shortestLifetime: UInt32 = 2

  init(
    _ keys: FleetKeys, over link: any StoreLink, on loop: any Loop, clock: StoreClockSync, follower: FlushFollower,
    identity: [UInt8], tally: FleetTally
  ) {
    (self.keys, self.link, self.loop, self.clock) = (keys, link, loop, clock)
    (self.follower, self.identity, self.tally) = (follower, identity, tally)
  }

  func close() { writeTimer.cancel() }

  // MARK: Lookups

  /// Whether values of the store may be used: the connection is up, all flushes are read, and the clock is known and
  /// valid. Measures the clock again if that is due.
  var isUsable: Bool {
    clock.measureIfDue()
    return link.isUp && follower.isCurrent && clock.time != nil && !clock.isRefused
  }

  /// Whether another command for which a lookup waits may be sent.
  var mayLook: Bool { looking < AnswerExchange.mostLooking }

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
    let time = (providerTimeout + AnswerExchange.leaseMargin).nanoseconds / 1_000_000
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
    guard lifetime >= AnswerExchange.shortestLifetime, isUsable, scope ?? 0 <= question.subnet?.length ?? 0,
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
    while writing < AnswerExchange.mostWriting, link.isUp, link.mayWrite, let next = writes.next() {
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
