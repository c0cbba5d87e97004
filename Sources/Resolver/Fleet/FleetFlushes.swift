// FleetFlushes.swift -- flushes that all daemons of a site carry out, also those that were away when one was made.
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

/// What came of telling the others of a flush.
package enum FlushReach: Hashable, Sendable {
  /// So many other daemons are there.
  case told(Int)
  /// The store is down, or refused it: only this daemon's cache was flushed.
  case failed(String)
}

extension FleetLevel {
  /// The most entries of the stream that are read at once; the store keeps about as many.
  private static let most = 1_000
  /// Anybody who can write to the store can make all daemons fetch everything again, by flushes where there is no secret,
  /// and by more entries than the stream holds: this many of both in a minute are carried out.
  private static let mostPerMinute = 6

  /// The command that waits for the next flush.
  package var nextFlush: [[UInt8]] {
    [
      Array("XREAD".utf8), Array("BLOCK".utf8), Array("0".utf8), Array("COUNT".utf8), Array("\(FleetLevel.most)".utf8),
      Array("STREAMS".utf8), keys.flushes, Array(lastFlush.utf8),
    ]
  }

  /// Takes entries of the stream.
  ///
  /// - Returns: the flushes to carry out here, in their order.
  package func took(_ reply: RESPValue) -> [RemoteFlush] {
    loop.assertCurrent()
    guard case .array(let streams) = reply, case .array(let stream)? = streams.first, stream.count == 2,
      case .array(let entries) = stream[1]
    else { return [] }
    var flushes: [RemoteFlush] = []
    for (index, entry) in entries.enumerated() {
      guard case .array(let parts) = entry, parts.count == 2, case .bulk(let id) = parts[0],
        case .array(let fields) = parts[1], let time = FleetLevel.time(ofEntry: id)
      else { continue }
      // Entries before this one may have been dropped from the stream. Anybody who can write to the store can fill it.
      if index == 0, entries.count >= FleetLevel.most, mayFlush(), let all = remote(.everything, at: time) {
        self.flushes.note(.everything, at: time)
        flushes.append(all)
      }
      lastFlush = String(decoding: id, as: UTF8.self)
      guard fields.count == 2, case .bulk(let octets) = fields[1], let note = FlushNote(octets, keys) else {
        counters.refusedFlushes += 1
        continue
      }
      let isOurs = note.sender == identity
      guard isOurs || keys.hasSecret || mayFlush() else {
        counters.refusedFlushes += 1
        continue
      }
      self.flushes.note(note.names, at: time)
      guard !isOurs, let flush = remote(note.names, at: time) else { continue }
      counters.flushes += 1
      flushes.append(flush)
    }
    return flushes
  }

  /// The names of a flush with the time in this machine's clock; nil if the store's clock is not known.
  private func remote(_ names: FlushedNames, at time: Int64) -> RemoteFlush? {
    // Without the store's time the flush counts for everything that is here now.
    guard let now = clock.time(at: loop.now.nanoseconds) else { return RemoteFlush(names: names, before: loop.now) }
    return RemoteFlush(names: names, before: loop.now + .milliseconds(max(time - now, -Int64(Int32.max))))
  }

  /// Tells the other daemons to flush.
  package func flush(_ names: FlushedNames) async -> FlushReach {
    loop.assertCurrent()
    if let now = clock.time(at: loop.now.nanoseconds) { flushes.note(names, at: now) }
    let note = FlushNote(names: names, sender: identity).octets(keys)
    let words = [
      Array("XADD".utf8), keys.flushes, Array("MAXLEN".utf8), Array("~".utf8), Array("\(FleetLevel.most)".utf8),
      Array("*".utf8), Array("f".utf8), note,
    ]
    switch await call(words) {
    case .success: break
    case .failure(.error(let text)): return .failed("the store refused it: \(text)")
    case .failure: return .failed("the store is not reached")
    }
    return .told(await members().count { $0.member.id != member.id })
  }

  /// The daemons that are there, and when each gave its last sign of life, in milliseconds of the store's clock.
  package func members() async -> [(member: FleetMember, signedAt: Int64)] {
    guard let now = clock.time(at: loop.now.nanoseconds),
      case .success(.array(let words)) = await call([
        Array("ZRANGE".utf8), keys.members, Array("0".utf8), Array("-1".utf8), Array("WITHSCORES".utf8),
      ])
    else { return [] }
    return stride(from: 0, to: words.count - 1, by: 2).compactMap { index in
      guard case .bulk(let text) = words[index], case .bulk(let score) = words[index + 1],
        let signedAt = Int64(String(decoding: score, as: UTF8.self)), now - signedAt < FleetMember.lifetime,
        let member = FleetMember(text: String(decoding: text, as: UTF8.self))
      else { return nil }
      return (member, signedAt)
    }
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
    return Int64(text).flatMap { (0...(Int64.max / 2)).contains($0) ? $0 : nil }
  }
}
