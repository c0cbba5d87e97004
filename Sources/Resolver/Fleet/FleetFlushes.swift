// FleetFlushes.swift -- flushes that all daemons of a fleet carry out, also those that were away when one was made.
//
// A flush is an entry of a stream in the store. Each daemon reads the stream over a connection of its own, from the last entry
// that it knows.

import DNSWire
import EventLoop
import Fleet
import Store

/// A flush of another daemon, for this one's cache.
package struct RemoteFlush: Sendable {
  /// What is flushed.
  package var names: FlushedNames
  /// Only what was stored before is flushed.
  package var before: BootInstant
}

/// Whether the other daemons were notified of a flush.
package enum FlushReach: Hashable, Sendable {
  /// So many other daemons are there, nil if the store does not say, and so many more that cannot read the flush: they have
  /// another secret.
  case notified(Int?, strangers: Int = 0)
  /// The store is down, or refused it: only this daemon's cache was flushed.
  case failed(String)
}

/// How far a daemon has read the stream of flushes.
enum FlushReading {
  /// It has no connection for that.
  case away
  /// There may be entries that it does not know: values of the store may be older than a flush.
  case behind
  /// It knows all entries, and waits for the next one.
  case current
}

extension FleetLevel {
  /// The most entries that are read at once: together they are less than 1 MiB.
  private static let entriesAtOnce = 15
  /// The octets of these entries that are looked at in one turn, unless the first has more: what they say takes time.
  private static let octetsAtOnce = 64 << 10
  /// The entries that the store keeps of the stream, about.
  private static let most = 1_000
  /// Anybody who can write to the store can make all daemons fetch everything again, by flushes where there is no secret,
  /// and by more entries than the stream holds: so often in a minute they are carried out, and what is more waits.
  private static let mostPerMinute = 6
  /// The shortest time between two walks through the cache.
  private static let walkPause = Duration.seconds(1)
  /// How long a stream may be dead before TCP's keepalive notices, and more, in milliseconds.
  private static let longestUnnoticed: Int64 = 300_000
  /// The pause between lines about entries that are no flushes for this daemon.
  private static let refusalPause = Duration.seconds(3_600)
  /// The ID that is before that of every entry.
  static let firstEntry = "0-0"

  /// The command that reads the stream: what is there already, and then what comes.
  package var nextFlush: [[UInt8]] {
    let block = flushReading == .current ? [Array("BLOCK".utf8), Array("0".utf8)] : []
    return [Array("XREAD".utf8)] + block + [
      Array("COUNT".utf8), Array("\(FleetLevel.entriesAtOnce)".utf8), Array("STREAMS".utf8), keys.flushes,
      Array(lastFlush.utf8),
    ]
  }

  /// The connection that reads the stream is there, or is gone.
  ///
  /// What was read is carried out when the rest is known too, over whichever connection. The stream may have lost entries
  /// meanwhile.
  package func flushesConnected(_ isConnected: Bool) {
    recordUse()
    flushReading = isConnected ? .behind : .away
    backlogBegin = nil
  }

  /// Values of the store were used until now, if all flushes seemed to be known.
  private func recordUse() {
    if flushReading == .current, let now = clock.time(at: loop.now.nanoseconds) { usedUntil = now }
  }

  /// Until when the cache is flushed, by a flush of what was asked for until a time, in milliseconds of the store's clock.
  ///
  /// A value from before the flush may have been taken from the store as long as the flush was not known: for as long as a
  /// stream can be dead unnoticed. A flush that is older, such as one that somebody repeats, flushes no more than it did.
  private func endInCache(of end: Int64) -> Int64 {
    let ownBegin = wasCurrent ? nil : clock.time(at: createdAt.nanoseconds)
    guard let used = usedUntil ?? ownBegin, used - end <= FleetLevel.longestUnnoticed else { return end }
    return max(end, used)
  }

  /// Takes entries of the stream, or that there are no more, and carries out what they say.
  ///
  /// - Returns: whether to read on at once.
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
      // It is not known why, nor what was missed.
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
      // The rest is read again.
      guard !isCut else { break }
      lastFlush = String(decoding: id, as: UTF8.self)
      if backlogBegin == nil { backlogBegin = time }
      backlogCount += 1
      guard fields.count == 2, case .bulk(let octets) = fields[1], let note = FlushNote(octets, keys) else {
        refused(isNew: isNew)
        continue
      }
      // Without a secret, a stranger could send a note of another daemon with a time that hides all its later ones.
      guard note.sender != identity, !keys.hasSecret || noteOrder.insert(note) else { continue }
      // Values of the store are old at once; what may have to wait is the cache.
      let end = min(note.end(addedAt: time), latestFlush)
      flushes.record(note.names, at: end)
      backlog.add(note.names, until: endInCache(of: end))
    }
    if entries.count < FleetLevel.entriesAtOnce, !isCut { caughtUp() } else { flushReading = .behind }
    return lastFlush != before
  }

  /// An entry of the stream is none for this daemon. One that was there before may be of an earlier secret.
  private func refused(isNew: Bool) {
    counters.refusedFlushes += 1
    guard isNew else { return }
    if let refusalLoggedAt, loop.now - refusalLoggedAt < FleetLevel.refusalPause { return }
    refusalLoggedAt = loop.now
    log(FleetNote(isProblem: true, text: "a flush was not carried out: it has another secret, or is damaged"))
  }

  /// All entries are known: carries out those that were read in a row.
  private func caughtUp() {
    let (batch, begin, count) = (backlog, backlogBegin, backlogCount)
    (backlog, backlogBegin, backlogCount) = (FlushBatch(), nil, 0)
    (flushReading, wasCurrent, usedUntil) = (.current, true, nil)
    // Entries before the first one may have been dropped from the stream. Anybody who can write to the store can fill it.
    if count >= FleetLevel.most, let begin {
      let end = min(begin, latestFlush)
      flushes.record(.everything, at: end)
      var all = FlushBatch()
      all.add(.everything, until: end)
      carryOut(all, isProven: false)
    }
    carryOut(batch, isProven: keys.hasSecret)
  }

  /// Carries out flushes, or lets them wait.
  ///
  /// - Parameter isProven: whether their senders have shown the secret.
  private func carryOut(_ batch: FlushBatch, isProven: Bool) {
    guard !batch.isEmpty else { return }
    guard !isProven, !mayFlush() else { return carryOut(batch) }
    waitingFlushes.add(batch)
    guard !flushTimer.isSet, let oldest = recentFlushes.first else { return }
    log(
      FleetNote(
        isProblem: false,
        text:
          "more than \(FleetLevel.mostPerMinute) flushes of others within a minute: further ones wait for up to 60 s"))
    flushTimer.set(after: max(.zero, oldest + .seconds(60) - loop.now), on: loop, for: self) {
      let waiting = $0.waitingFlushes
      $0.waitingFlushes = FlushBatch()
      $0.carryOut(waiting, isProven: false)
    }
  }

  /// Carries out flushes, those of a second together: each time, the whole cache may have to be gone through.
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
      // Without the store's time the flush counts for everything that is here now.
      let age = clock.time(at: loop.now.nanoseconds).map { end > $0 ? 0 : min($0 - end, Int64(Int32.max)) } ?? 0
      flushHere?(RemoteFlush(names: names, before: loop.now + .milliseconds(-age)))
    }
  }

  /// The latest time of a flush that is believed: of a later one no value would ever be used.
  private var latestFlush: Int64 {
    if let now = clock.time(at: loop.now.nanoseconds) { return now + 1_000 }
    return (loop.wallTime + StoreClock.mostDifference) * 1_000
  }

  /// Answers of the store from before now are old for this daemon.
  func recordFlush(_ names: FlushedNames) {
    loop.assertCurrent()
    flushes.record(names, at: clock.time(at: loop.now.nanoseconds) ?? latestFlush)
  }

  /// Notifies the other daemons of a flush.
  func announce(_ names: FlushedNames) async -> FlushReach {
    loop.assertCurrent()
    link.requestUse()
    guard let now = clock.time(at: loop.now.nanoseconds) else { return .failed("the store is \(report.state)") }
    announcedAt = max(now, announcedAt + 1)
    let note = FlushNote(names: names, sender: identity, sentAt: announcedAt).octets(keys)
    let words = [
      Array("XADD".utf8), keys.flushes, Array("MAXLEN".utf8), Array("~".utf8), Array("\(FleetLevel.most)".utf8),
      Array("*".utf8), Array("f".utf8), note,
    ]
    switch await call(words) {
    case .success: break
    case .failure(.error(let text)): return .failed("the store refused it: \(text)")
    case .failure(.timeout): return .failed("the store has not answered within a second; it may have taken it")
    case .failure where link.isUp: return .failed("the store has not replied; it may have taken it")
    case .failure: return .failed("the store is \(report.state)")
    }
    guard let others = await members()?.filter({ $0.member.id != member.id }) else { return .notified(nil) }
    let strangers = others.count { $0.member.difference(from: member) == .secret }
    return .notified(others.count - strangers, strangers: strangers)
  }

  /// Sends a command of a person, who waits for up to a second.
  private func call(_ words: [[UInt8]]) async -> Result<RESPValue, StoreFailure> {
    await withCheckedContinuation { continuation in
      link.call(words, timeout: .seconds(1)) { continuation.resume(returning: $0) }
    }
  }

  /// Counts a flush for which nobody has shown the secret; returns whether it is carried out.
  private func mayFlush() -> Bool {
    let now = loop.now
    recentFlushes.removeAll { now - $0 >= .seconds(60) }
    guard recentFlushes.count < FleetLevel.mostPerMinute else { return false }
    recentFlushes.append(now)
    return true
  }

  /// The milliseconds in an entry's ID.
  private static func time(ofEntry id: [UInt8]) -> Int64? {
    let text = String(decoding: id.prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)
    return UInt64(text).map { Int64(min($0, UInt64(StoreClock.times.upperBound))) }
  }
}
