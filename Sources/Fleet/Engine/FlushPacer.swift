// FlushPacer.swift -- carries out the flushes of other daemons in this daemon's cache, not too often.
//
// A pass through the whole cache is expensive, so flushes within a second share one. An attacker with write access to
// the store could keep all caches empty: without a secret by flushes; with a secret by more entries than the stream
// holds, since a daemon that may have missed a flush flushes everything. So unauthenticated flushes are carried out at
// most six times a minute; further ones are queued and merged. Resolver's loop only.

import EventLoop

/// A flush of another daemon, to be carried out in this daemon's cache.
package struct RemoteFlush: Sendable {
  package var names: FlushedNames
  /// The cut-off: entries that were stored before this time are flushed.
  package var before: BootInstant
}

/// Flushes that are read, until they are carried out.
package final class FlushPacer {
  private let loop: any Loop
  private let clock: StoreClockSync
  private let tally: FleetTally
  private let note: (FleetNote) -> Void
  /// When unauthenticated flushes were carried out within the last minute.
  private var recent: [BootInstant] = []
  /// Unauthenticated flushes over the limit, and the timer that carries them out.
  private var delayed = FlushBatch()
  private let delayTimer = OwnedTimer()
  /// Flushes for the next pass through the cache, the timer of that pass, and when the last one was.
  private var pending = FlushBatch()
  private let passTimer = OwnedTimer()
  private var lastPassAt: BootInstant?
  /// Carries out a flush in the cache.
  package var flushCache: ((RemoteFlush) -> Void)?

  /// The most unauthenticated flushes a minute.
  private static let mostPerMinute = 6
  /// The shortest time between two passes through the cache.
  private static let passPause = Duration.seconds(1)

  init(on loop: any Loop, clock: StoreClockSync, tally: FleetTally, note: @escaping (FleetNote) -> Void) {
    (self.loop, self.clock, self.tally, self.note) = (loop, clock, tally, note)
  }

  func close() {
    flushCache = nil
    for timer in [delayTimer, passTimer] { timer.cancel() }
  }

  /// Carries out flushes, or queues them if there were too many unauthenticated ones.
  ///
  /// - Parameter isProven: whether the entries were sealed with the secret.
  func add(_ batch: FlushBatch, isProven: Bool) {
    guard !batch.isEmpty else { return }
    guard !isProven, !mayFlush() else { return carryOut(batch) }
    delayed.add(batch)
    guard !delayTimer.isSet, let oldest = recent.first else { return }
    note(
      FleetNote(
        isProblem: false,
        text: "more than \(FlushPacer.mostPerMinute) unauthenticated flushes within 60 s: "
          + "further ones are delayed for up to 60 s"))
    delayTimer.set(after: max(.zero, oldest + .seconds(60) - loop.now), on: loop, for: self) {
      let delayed = $0.delayed
      $0.delayed = FlushBatch()
      $0.add(delayed, isProven: false)
    }
  }

  /// Counts an unauthenticated flush against the limit; returns false if the limit is reached.
  private func mayFlush() -> Bool {
    let now = loop.now
    recent.removeAll { now - $0 >= .seconds(60) }
    guard recent.count < FlushPacer.mostPerMinute else { return false }
    recent.append(now)
    return true
  }

  private func carryOut(_ batch: FlushBatch) {
    pending.add(batch)
    guard !passTimer.isSet else { return }
    guard let lastPassAt, loop.now - lastPassAt < FlushPacer.passPause else { return pass() }
    passTimer.set(at: lastPassAt + FlushPacer.passPause, on: loop, for: self) { $0.pass() }
  }

  /// Flushes the cache.
  private func pass() {
    let batch = pending
    (pending, lastPassAt) = (FlushBatch(), loop.now)
    tally.counters.flushes += batch.count
    for (names, end) in batch.parts {
      // Without the store's time the cut-off is now.
      let age = clock.time.map { end > $0 ? 0 : min($0 - end, Int64(Int32.max)) } ?? 0
      flushCache?(RemoteFlush(names: names, before: loop.now + .milliseconds(-age)))
    }
  }
}
