// FlushFollower.swift -- sends flushes to all daemons of the fleet, and follows those of the others.
//
// The problem: after a flush no daemon may serve an older answer. That includes a daemon that was disconnected, and one
// that later finds such an answer in the store. A message to the connected daemons (PUBLISH) would miss those that
// are away, or whose connection is dead without their knowledge. Deleting the values in the store would miss a value
// that another daemon fetched before the flush and writes after it.
//
// So a flush is an entry of a stream in the store. Each daemon reads it over a connection of its own, from the last
// entry that it knows, and a daemon that was away carries out what it has missed. The rules:
//
// * While there may be unread entries, no value of the store is used (`isCurrent`).
// * A flush has a cut-off, a time of the store's clock: answers fetched at or before it are flushed. Values of the
//   store from before the cut-off are ignored as soon as the entry is read (`FlushLog`); nothing is deleted there.
// * This daemon's cache is flushed when the stream is read to its end (`backlog`, `FlushPacer`). The cut-off
//   in the cache is later than the flush's own: until the daemon reads the flush, it may copy flushed values.
// * The store drops old entries. If unread ones may be lost, everything before the oldest entry is flushed.
//
// The store is not trusted. With a secret entries are sealed, and a replay is not carried out (`NoteOrder`). Without a
// secret every client with write access can flush, but neither keep the caches empty nor make later values unusable:
// flushes are limited to a few a minute, and a cut-off in the future is capped.
//
// Bounds: 15 entries and less than 1 MiB a reply, 64 KiB of entries a turn, 20,000 names in the backlog, 4,096 names
// and 1,000 senders that are known. Resolver's loop only.

import DNSWire
import EventLoop
import Store

/// Reads the stream of flushes. The owner connects it with the stream's connection.
package final class FlushFollower {
  private enum Reading {
    /// The stream's connection is down.
    case away
    /// There may be unread entries.
    case behind
    /// All entries are read; XREAD blocks until the next one.
    case current
  }

  private let loop: any Loop
  private let link: any StoreLink
  private let clock: StoreClockSync
  private let keys: FleetKeys
  private let identity: [UInt8]
  private let pacer: FlushPacer
  private let tally: FleetTally
  private let note: (FleetNote) -> Void
  private let createdAt: BootInstant
  private var reading = Reading.away
  /// Whether `reading` was ever `.current`. Until then the cache may contain values of the store from before the start.
  private var wasCurrent = false
  /// While entries may be unread: when values of the store were last usable, in milliseconds of the store's clock.
  /// Otherwise nil.
  private var usedUntil: Int64?
  private var log = FlushLog()
  /// The ID of the last entry that was read.
  private var lastEntry = FlushFollower.firstEntry
  /// Flushes that were read and are not carried out yet, the number of these entries, and the time of the first one
  /// over this connection.
  private var backlog = FlushBatch()
  private var backlogCount = 0
  private var backlogBegin: Int64?
  private var noteOrder = NoteOrder()
  /// When an ignored entry was last logged.
  private var refusalLoggedAt: BootInstant?
  /// When this daemon sent its last flush, in milliseconds of the store's clock.
  private var announcedAt = Int64.min

  /// Entries per XREAD. An entry is smaller than 64 KiB, so a reply is smaller than 1 MiB.
  private static let entriesAtOnce = 15
  /// Octets of entries that are parsed in one turn of the loop; the first entry is always parsed.
  private static let octetsAtOnce = 64 << 10
  /// The stream's approximate length (MAXLEN ~).
  private static let most = 1_000
  /// Longer than a dead stream can go unnoticed by TCP keepalive, in milliseconds.
  private static let longestUnnoticed: Int64 = 300_000
  /// The shortest time between log lines about ignored entries.
  private static let refusalPause = Duration.seconds(3_600)
  /// Smaller than the ID of every entry.
  private static let firstEntry = "0-0"

  init(
    _ keys: FleetKeys, over link: any StoreLink, on loop: any Loop, clock: StoreClockSync, pacer: FlushPacer,
    identity: [UInt8], tally: FleetTally, note: @escaping (FleetNote) -> Void
  ) {
    (self.keys, self.link, self.loop, self.clock) = (keys, link, loop, clock)
    (self.pacer, self.identity, self.tally, self.note) = (pacer, identity, tally, note)
    createdAt = loop.now
  }

  // MARK: Values of the store

  /// Whether all flushes are read; otherwise values of the store may be older than a flush.
  var isCurrent: Bool { reading == .current }

  /// Whether a flush covers a value; see `FlushLog.covers`.
  func covers(_ name: DomainName, stored: Int64) -> Bool { log.covers(name, stored: stored) }

  /// Values that were stored at or before `time` are not used, in milliseconds of the store's clock.
  func ignoreValues(until time: Int64) { log.record(.everything, at: time) }

  /// Records this daemon's own flush: values of the store that were fetched until now are not used.
  package func record(_ names: FlushedNames) {
    loop.assertCurrent()
    log.record(names, at: clock.time ?? latestCutOff)
  }

  // MARK: Reading

  /// The next XREAD: without BLOCK until caught up, then blocking.
  package var nextRead: [[UInt8]] {
    let block = isCurrent ? ["BLOCK", "0"] : []
    let options = block + ["COUNT", "\(FlushFollower.entriesAtOnce)", "STREAMS"]
    return StoreCommand.xread.words() + options.map { Array($0.utf8) } + [keys.flushes, Array(lastEntry.utf8)]
  }

  /// Call this when the stream's connection opens or closes. The backlog stays, but `backlogBegin` is reset: without a
  /// connection, entries can be missed.
  package func connected(_ isConnected: Bool) {
    recordUse()
    reading = isConnected ? .behind : .away
    backlogBegin = nil
  }

  /// The store has lost its data: the stream is to be read from its start, over another connection.
  func restart() {
    lastEntry = FlushFollower.firstEntry
    (backlogCount, backlogBegin) = (0, nil)
  }

  /// Handles a reply to XREAD. Null means that there are no more entries.
  ///
  /// - Returns: whether to send the next XREAD at once; false makes the stream pause.
  package func received(_ reply: RESPValue) -> Bool {
    loop.assertCurrent()
    recordUse()
    if case .null = reply, reading == .behind {
      caughtUp()
      return true
    }
    guard case .array(let streams) = reply, case .array(let stream)? = streams.first, stream.count == 2,
      case .array(let entries) = stream[1], (1...FlushFollower.entriesAtOnce).contains(entries.count)
    else {
      // Malformed reply: entries may have been missed.
      reading = .behind
      return false
    }
    let before = lastEntry
    let isCut = read(entries)
    if entries.count < FlushFollower.entriesAtOnce, !isCut { caughtUp() } else { reading = .behind }
    return lastEntry != before
  }

  /// Reads entries into the log and the backlog.
  ///
  /// - Returns: whether there were too many octets; the next XREAD reads the remaining entries again.
  private func read(_ entries: [RESPValue]) -> Bool {
    var octetsRead = 0
    for entry in entries {
      guard case .array(let parts) = entry, parts.count == 2, case .bulk(let id) = parts[0],
        case .array(let fields) = parts[1], let time = FlushFollower.time(ofEntry: id)
      else { continue }
      var octets: [UInt8]?
      if fields.count == 2, case .bulk(let found) = fields[1] {
        guard octetsRead == 0 || octetsRead + found.count <= FlushFollower.octetsAtOnce else { return true }
        octetsRead += found.count
        octets = found
      }
      lastEntry = String(decoding: id, as: UTF8.self)
      if backlogBegin == nil { backlogBegin = time }
      backlogCount += 1
      guard let note = octets.flatMap({ FlushNote($0, keys) }) else {
        refused()
        continue
      }
      // Replays are rejected only with a secret: without one, an attacker could forge an entry of another daemon with a
      // time in the future, and all later flushes of that daemon would be ignored.
      guard note.sender != identity, !keys.hasSecret || noteOrder.insert(note) else { continue }
      let end = min(note.end(addedAt: time), latestCutOff)
      log.record(note.names, at: end)
      backlog.add(note.names, until: cutOffInCache(of: end))
    }
    return false
  }

  /// Counts an entry that is malformed or has another secret. It is logged only if it was added while this daemon was
  /// reading: an older one may be from before a change of the secret.
  private func refused() {
    tally.counters.refusedFlushes += 1
    guard isCurrent else { return }
    if let refusalLoggedAt, loop.now - refusalLoggedAt < FlushFollower.refusalPause { return }
    refusalLoggedAt = loop.now
    note(FleetNote(text: "ignored a flush from the store: different secret, or corrupt entry"))
  }

  /// All entries are read: carries out the backlog.
  private func caughtUp() {
    let (batch, begin, count) = (backlog, backlogBegin, backlogCount)
    (backlog, backlogBegin, backlogCount) = (FlushBatch(), nil, 0)
    (reading, wasCurrent, usedUntil) = (.current, true, nil)
    // The stream was full, so entries before the first one may be missing. The flush for them counts as unauthenticated,
    // since every client with write access can fill the stream.
    if count >= FlushFollower.most, let begin {
      let end = min(begin, latestCutOff)
      log.record(.everything, at: end)
      var all = FlushBatch()
      all.add(.everything, until: end)
      pacer.add(all, isProven: false)
    }
    pacer.add(batch, isProven: keys.hasSecret)
  }

  // MARK: Cut-offs, in milliseconds of the store's clock

  /// Sets `usedUntil` to now if values of the store could be used until now.
  private func recordUse() {
    if isCurrent, let now = clock.time { usedUntil = now }
  }

  /// The cut-off in our cache for a flush with cut-off `end`: `end` or, if later, the last use of the store (the
  /// daemon's start, if the stream was never read to its end). A use more than `longestUnnoticed` after `end`, as with a
  /// replayed flush, does not count.
  private func cutOffInCache(of end: Int64) -> Int64 {
    let ownBegin = wasCurrent ? nil : clock.time(at: createdAt)
    guard let used = usedUntil ?? ownBegin, used - end <= FlushFollower.longestUnnoticed else { return end }
    return max(end, used)
  }

  /// The latest valid cut-off; later ones are capped.
  private var latestCutOff: Int64 {
    if let now = clock.time { return now + 1_000 }
    return (loop.wallTime + StoreClock.mostDifference) * 1_000
  }

  /// The milliseconds of an entry's ID (`MILLISECONDS-SEQUENCE`); nil if malformed.
  private static func time(ofEntry id: [UInt8]) -> Int64? {
    let text = String(decoding: id.prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)
    return UInt64(text).map { Int64(min($0, UInt64(StoreClock.times.upperBound))) }
  }

  // MARK: Sending

  /// Adds a flush to the stream; times out after 1 s.
  ///
  /// - Returns: nil if the store has accepted it.
  func announce(_ names: FlushedNames) async -> StoreFailure? {
    guard let now = clock.time else { return .open }
    announcedAt = max(now, announcedAt + 1)
    let note = FlushNote(names: names, sender: identity, sentAt: announcedAt).octets(keys)
    let words = StoreCommand.xadd.words(
      keys.flushes, "MAXLEN".utf8, "~".utf8, "\(FlushFollower.most)".utf8, "*".utf8, "f".utf8, note)
    let result = await withCheckedContinuation { continuation in
      link.call(words, timeout: .seconds(1)) { continuation.resume(returning: $0) }
    }
    if case .failure(let failure) = result { return failure }
    return nil
  }
}
