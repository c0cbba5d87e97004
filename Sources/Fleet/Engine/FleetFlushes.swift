// FleetFlushes.swift -- sends flushes to all daemons of the fleet, and carries out those of others.
//
// A flush is an entry of a stream in the store. Each daemon reads the stream over a separate connection, from the last
// entry that it knows, so a daemon that was disconnected carries out the flush after it reconnects. While it may have
// missed entries, it uses no value of the store.
//
// A flush has a cut-off: answers fetched at or before this time are flushed. For values of the store the cut-off
// applies as soon as the entry is read (`FlushLog`). In the cache it may apply later: a pass through the whole cache is
// expensive, so flushes within a second share one, and unauthenticated flushes are limited to a few a minute.

import EventLoop
import Store

/// A flush of another daemon, to be carried out in this daemon's cache.
package struct RemoteFlush: Sendable {
  package var names: FlushedNames
  /// The cut-off: entries that were stored before this time are flushed.
  package var before: BootInstant
}

/// The outcome of sending a flush to the other daemons.
package enum FlushReach: Hashable, Sendable {
  /// The number of other daemons (nil if unknown), and the number of those that cannot decrypt the flush because their
  /// secret is different; these are not part of the first number.
  case notified(Int?, strangers: Int = 0)
  /// Only this daemon's cache was flushed, for this reason.
  case failed(String)
}

/// How far this daemon has read the stream of flushes.
enum FlushReading {
  /// The stream's connection is down.
  case away
  /// There may be unread entries, so values of the store may be older than a flush and are not used.
  case behind
  /// All entries are read; XREAD blocks until the next one.
  case current
}

extension FleetLevel {
  /// Entries per XREAD. An entry is smaller than 64 KiB, so a reply is smaller than 1 MiB.
  private static let entriesAtOnce = 15
  /// Octets of entries that are parsed in one turn of the loop, to bound its time; the first entry is always parsed.
  private static let octetsAtOnce = 64 << 10
  /// The stream's approximate length (MAXLEN ~).
  private static let most = 1_000
  /// At most this many unauthenticated flushes a minute; further ones are queued and merged. An attacker with write
  /// access to the store could otherwise keep all caches empty: without a secret by flushes, with one by adding more
  /// entries than the stream holds, since a daemon that may have missed a flush flushes everything.
  private static let mostPerMinute = 6
  /// The shortest time between two passes through the cache.
  private static let walkPause = Duration.seconds(1)
  /// Longer than a dead stream can go unnoticed by TCP keepalive, in milliseconds.
  private static let longestUnnoticed: Int64 = 300_000
  /// The shortest time between log lines about ignored entries.
  private static let refusalPause = Duration.seconds(3_600)
  /// Smaller than the ID of every entry.
  static let firstEntry = "0-0"

  /// XREAD: without BLOCK until caught up, then blocking.
  package var nextFlush: [[UInt8]] {
    let block = flushReading == .current ? ["BLOCK", "0"] : []
    let options = block + ["COUNT", "\(FleetLevel.entriesAtOnce)", "STREAMS"]
    return StoreCommand.xread.words() + options.map { Array($0.utf8) } + [keys.flushes, Array(lastFlush.utf8)]
  }

  /// Called when the stream's connection opens or closes.
  ///
  /// Entries that were read before stay in `backlog`, and are carried out once all entries are read, also over a later
  /// connection. `backlogBegin` starts again: meanwhile the store may have trimmed entries.
  package func flushesConnected(_ isConnected: Bool) {
    recordUse()
    flushReading = isConnected ? .behind : .away
    backlogBegin = nil
  }

  /// Sets `usedUntil` to now if values of the store could be used until now.
  private func recordUse() {
    if flushReading == .current, let now = clock.time { usedUntil = now }
  }

  /// The cut-off to apply to our cache for a flush with cut-off `end`, both in milliseconds of the store's clock.
  ///
  /// Until this daemon read the flush it may have copied flushed values from the store into its cache, so the cut-off
  /// is the last time at which it used the store. This holds only for flushes that are not older than a dead stream can
  /// go unnoticed; others, such as replayed ones, keep their cut-off.
  private func endInCache(of end: Int64) -> Int64 {
    let ownBegin = wasCurrent ? nil : clock.time(at: createdAt)
    guard let used = usedUntil ?? ownBegin, used - end <= FleetLevel.longestUnnoticed else { return end }
    return max(end, used)
  }

  /// Handles a reply to XREAD: parses its entries, and carries them out once all are read. Null means that there are no
  /// more.
  ///
  /// - Returns: whether to send the next XREAD at once; false makes the stream pause.
  package func received(_ reply: RESPValue) -> Bool {
    loop.assertCurrent()
    recordUse()
    if case .null = reply, flushReading == .behind {
      caughtUp()
      return true
    }
    guard case .array(let streams) = reply, case .array(let stream)? = streams.first, stream.count == 2,
      case .array(let entries) = stream[1], (1...FleetLevel.entriesAtOnce).contains(entries.count)
    else {
      // Malformed reply: entries may have been missed.
      flushReading = .behind
      return false
    }
    let (before, isNew) = (lastFlush, flushReading == .current)
    var (octetsRead, isCut) = (0, false)
    for entry in entries {
      guard case .array(let parts) = entry, parts.count == 2, case .bulk(let id) = parts[0],
        case .array(let fields) = parts[1], let time = FleetLevel.time(ofEntry: id)
      else { continue }
      if fields.count == 2, case .bulk(let octets) = fields[1] {
        isCut = octetsRead > 0 && octetsRead + octets.count > FleetLevel.octetsAtOnce
        octetsRead += octets.count
      }
      // The next XREAD reads the remaining entries again.
      guard !isCut else { break }
      lastFlush = String(decoding: id, as: UTF8.self)
      if backlogBegin == nil { backlogBegin = time }
      backlogCount += 1
      guard fields.count == 2, case .bulk(let octets) = fields[1], let note = FlushNote(octets, keys) else {
        refused(isNew: isNew)
        continue
      }
      // Replay protection needs the secret. Without one, an attacker could forge an entry of another daemon with a time
      // in the future, and all later flushes of that daemon would be ignored.
      guard note.sender != identity, !keys.hasSecret || noteOrder.insert(note) else { continue }
      // The cut-off applies to values of the store at once, to the cache when the backlog is carried out.
      let end = min(note.end(addedAt: time), latestFlush)
      flushes.record(note.names, at: end)
      backlog.add(note.names, until: endInCache(of: end))
    }
    if entries.count < FleetLevel.entriesAtOnce, !isCut { caughtUp() } else { flushReading = .behind }
    return lastFlush != before
  }

  /// Counts an entry that is malformed or has another secret. It is logged only if it was added while this daemon was
  /// reading: an older one may be from before a change of the secret.
  private func refused(isNew: Bool) {
    counters.refusedFlushes += 1
    guard isNew else { return }
    if let refusalLoggedAt, loop.now - refusalLoggedAt < FleetLevel.refusalPause { return }
    refusalLoggedAt = loop.now
    log("ignored a flush from the store: different secret, or corrupt entry")
  }

  /// All entries are read: carries out the backlog.
  private func caughtUp() {
    let (batch, begin, count) = (backlog, backlogBegin, backlogCount)
    (backlog, backlogBegin, backlogCount) = (FlushBatch(), nil, 0)
    (flushReading, wasCurrent, usedUntil) = (.current, true, nil)
    // With a full stream, entries before the first one may have been trimmed: flush everything up to there. This counts
    // as unauthenticated, since every client with write access can fill the stream.
    if count >= FleetLevel.most, let begin {
      let end = min(begin, latestFlush)
      flushes.record(.everything, at: end)
      var all = FlushBatch()
      all.add(.everything, until: end)
      carryOut(all, isProven: false)
    }
    carryOut(batch, isProven: keys.hasSecret)
  }

  /// Carries out flushes, or queues them if there were too many unauthenticated ones.
  ///
  /// - Parameter isProven: whether the senders are authenticated, that is, the entries were sealed with the secret.
  private func carryOut(_ batch: FlushBatch, isProven: Bool) {
    guard !batch.isEmpty else { return }
    guard !isProven, !mayFlush() else { return carryOut(batch) }
    waitingFlushes.add(batch)
    guard !flushTimer.isSet, let oldest = recentFlushes.first else { return }
    log(
      "more than \(FleetLevel.mostPerMinute) unauthenticated flushes within 60 s: "
        + "further ones are delayed for up to 60 s", isProblem: false)
    flushTimer.set(after: max(.zero, oldest + .seconds(60) - loop.now), on: loop, for: self) {
      let waiting = $0.waitingFlushes
      $0.waitingFlushes = FlushBatch()
      $0.carryOut(waiting, isProven: false)
    }
  }

  /// Carries out flushes in the cache; those within a second share one pass.
  private func carryOut(_ batch: FlushBatch) {
    nextFlushes.add(batch)
    guard !walkTimer.isSet else { return }
    guard let last = flushedAt, loop.now - last < FleetLevel.walkPause else { return flushCache() }
    walkTimer.set(at: last + FleetLevel.walkPause, on: loop, for: self) { $0.flushCache() }
  }

  private func flushCache() {
    let batch = nextFlushes
    (nextFlushes, flushedAt) = (FlushBatch(), loop.now)
    counters.flushes += batch.count
    for (names, end) in batch.parts {
      // Without the store's time the cut-off is now.
      let age = clock.time.map { end > $0 ? 0 : min($0 - end, Int64(Int32.max)) } ?? 0
      flushHere?(RemoteFlush(names: names, before: loop.now + .milliseconds(-age)))
    }
  }

  /// The latest valid cut-off, in milliseconds of the store's clock. Later ones are capped: a cut-off in the far future
  /// would make all values of the store unusable.
  private var latestFlush: Int64 {
    if let now = clock.time { return now + 1_000 }
    return (loop.wallTime + StoreClock.mostDifference) * 1_000
  }

  /// Records this daemon's own flush: values of the store that were fetched until now are not used.
  package func recordFlush(_ names: FlushedNames) {
    loop.assertCurrent()
    flushes.record(names, at: clock.time ?? latestFlush)
  }

  /// Adds a flush to the stream, then counts the daemons that read it. Each of the commands times out after 1 s.
  package func announce(_ names: FlushedNames) async -> FlushReach {
    loop.assertCurrent()
    link.requestUse()
    guard let now = clock.time else { return .failed("the store is \(report.state)") }
    announcedAt = max(now, announcedAt + 1)
    let note = FlushNote(names: names, sender: identity, sentAt: announcedAt).octets(keys)
    let words = StoreCommand.xadd.words(
      keys.flushes, "MAXLEN".utf8, "~".utf8, "\(FleetLevel.most)".utf8, "*".utf8, "f".utf8, note)
    switch await call(words) {
    case .success: break
    case .failure(.error(let text)): return .failed("the store refused the flush: \(text)")
    case .failure(.timeout): return .failed("no reply from the store within 1 s; it may have accepted the flush")
    case .failure where link.isUp: return .failed("no reply from the store; it may have accepted the flush")
    case .failure: return .failed("the store is \(report.state)")
    }
    guard let others = await members()?.filter({ $0.member.id != member.id }) else { return .notified(nil) }
    let strangers = others.count { $0.member.difference(from: member) == .secret }
    return .notified(others.count - strangers, strangers: strangers)
  }

  /// Sends an operator's command; times out after 1 s.
  private func call(_ words: [[UInt8]]) async -> Result<RESPValue, StoreFailure> {
    await withCheckedContinuation { continuation in
      link.call(words, timeout: .seconds(1)) { continuation.resume(returning: $0) }
    }
  }

  /// Counts an unauthenticated flush against the limit; returns false if the limit is reached.
  private func mayFlush() -> Bool {
    let now = loop.now
    recentFlushes.removeAll { now - $0 >= .seconds(60) }
    guard recentFlushes.count < FleetLevel.mostPerMinute else { return false }
    recentFlushes.append(now)
    return true
  }

  /// The milliseconds of an entry's ID (`MILLISECONDS-SEQUENCE`); nil if malformed.
  private static func time(ofEntry id: [UInt8]) -> Int64? {
    let text = String(decoding: id.prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)
    return UInt64(text).map { Int64(min($0, UInt64(StoreClock.times.upperBound))) }
  }
}
