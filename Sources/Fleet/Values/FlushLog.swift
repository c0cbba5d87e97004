// FlushLog.swift -- the wire format of a flush, replay protection, and the cut-offs of recent flushes.

import DNSWire

/// What a flush removes.
public enum FlushedNames: Hashable, Sendable {
  case everything
  /// Some names and, if `andBelow`, all names below them.
  case names([DomainName], andBelow: Bool)

  /// Whether the flush includes a name. The name must be in lower case.
  public func covers(_ name: DomainName) -> Bool {
    switch self {
    case .everything: true
    case .names(let names, let andBelow): names.contains { $0 == name || andBelow && name.isAtOrBelow($0) }
    }
  }
}

/// An entry of the stream of flushes:
///
///   version (1 octet), form (1: 0 plain, 1 sealed), then plain or sealed: kind (1: 0 everything, 1 names, 2 names and
///   below), sender (16), sent (8), number of names (2), names in wire format
public struct FlushNote: Equatable, Sendable {
  /// The most names in one flush: a command accepts no more, and an entry must be smaller than 64 KiB.
  public static let mostNames = 256

  public var names: FlushedNames
  /// The identity of the daemon that sent it: 16 octets.
  public var sender: [UInt8]
  /// When it was sent, in milliseconds of the store's clock. Strictly increasing for each sender.
  public var sentAt: Int64

  /// How long after `sentAt` an entry may have been added to the stream, in milliseconds. The cut-off of a later entry
  /// is capped.
  private static let longestWay: Int64 = 1_000
}

extension FlushNote {
  /// The cut-off, in milliseconds of the store's clock: answers fetched at or before this time are flushed. An attacker
  /// can copy an entry and add it to the stream again; the copy's cut-off is at most 1 s after the flush was sent.
  ///
  /// - Parameter added: the time in the ID of the stream's entry, in milliseconds.
  public func end(addedAt added: Int64) -> Int64 { min(added, sentAt + FlushNote.longestWay) }

  /// Composes the entry, sealed if there is a secret.
  public func octets(_ keys: FleetKeys) -> [UInt8] {
    var (kind, listed): (UInt8, [DomainName]) = (0, [])
    if case .names(let names, let andBelow) = names { (kind, listed) = (andBelow ? 2 : 1, names) }
    var body = [kind] + sender
    body += (0..<8).map { UInt8(truncatingIfNeeded: sentAt >> (56 - 8 * $0)) }
    body += [UInt8(listed.count >> 8), UInt8(listed.count & 0xFF)]
    for name in listed { body += name.octets }
    let sealed = keys.sealFlush(body)
    return [FleetKeys.version, sealed == nil ? 0 : 1] + (sealed ?? body)
  }

  /// Parses an entry; nil if malformed, or not sealed with this secret.
  public init?(_ octets: [UInt8], _ keys: FleetKeys) {
    guard octets.count > 2, octets[0] == FleetKeys.version, (octets[1] == 1) == keys.hasSecret else { return nil }
    guard let body = octets[1] == 1 ? keys.openFlush(octets[2...]) : Array(octets[2...]) else { return nil }
    guard body.count >= 27, body[0] <= 2 else { return nil }
    sender = Array(body[1..<17])
    sentAt = body[17..<25].reduce(0) { $0 << 8 | Int64($1) }
    guard FlushNote.times.contains(sentAt) else { return nil }
    let count = Int(body[25]) << 8 | Int(body[26])
    guard count <= FlushNote.mostNames, (count == 0) == (body[0] == 0) else { return nil }
    var rest = body[27...]
    var listed: [DomainName] = []
    for _ in 0..<count {
      guard let end = FlushNote.end(ofNameIn: rest), let name = DomainName(octets: Array(rest[..<end])) else {
        return nil
      }
      listed.append(name.lowercased)
      rest = rest[end...]
    }
    guard rest.isEmpty else { return nil }
    names = body[0] == 0 ? .everything : .names(listed, andBelow: body[0] == 2)
  }

  /// Valid values of `sentAt`. Sums with any of them do not overflow.
  private static let times = 0...(Int64.max / 4)

  /// The index after the name at the start of `octets`; nil if its root label is missing.
  private static func end(ofNameIn octets: ArraySlice<UInt8>) -> Int? {
    var index = octets.startIndex
    while index < octets.endIndex {
      let length = Int(octets[index])
      guard length > 0 else { return index + 1 }
      index += 1 + length
    }
    return nil
  }
}

/// Replay protection for sealed flushes: an attacker with access to the store can add recorded entries to the stream
/// again. A flush is new if it was sent after the last accepted one of the same daemon.
public struct NoteOrder: Sendable {
  /// The most daemons with a time of their own.
  static let most = 1_000

  /// When each daemon's last accepted flush was sent.
  private var latest: [[UInt8]: Int64] = [:]
  /// The latest time that was removed from `latest`. Other daemons' flushes must be later.
  private var floor = Int64.min

  /// Returns whether a flush is new, and records it if so.
  ///
  /// - Complexity: O(1); O(n) in the known daemons if there are more than `most`.
  public mutating func insert(_ note: FlushNote) -> Bool {
    guard note.sentAt > latest[note.sender, default: floor] else { return false }
    latest[note.sender] = note.sentAt
    guard latest.count > NoteOrder.most, let oldest = latest.min(by: { $0.value < $1.value }) else { return true }
    floor = max(floor, oldest.value)
    latest[oldest.key] = nil
    return true
  }
}

/// The cut-offs of recent flushes, by name. Nothing is deleted in the store: a value that was fetched at or before the
/// cut-off of its name is not used.
public struct FlushLog: Sendable {
  /// The most names with a cut-off of their own.
  static let most = 4_096

  /// The latest cut-offs of a name: by flushes of the name only, and by flushes that include the names below.
  private struct Times {
    var alone = Int64.min
    var andBelow = Int64.min
    var latest: Int64 { max(alone, andBelow) }
  }

  private var times: [DomainName: Times] = [:]
  /// The cut-off for all names.
  private var everythingUntil = Int64.min

  /// - Parameter time: the cut-off, in milliseconds of the store's clock.
  /// - Complexity: O(n) in the names of the flush; O(m log m) in all known names each time that these exceed `most`.
  public mutating func record(_ names: FlushedNames, at time: Int64) {
    guard time > everythingUntil else { return }
    guard case .names(let names, let andBelow) = names else { return recordEverything(until: time) }
    for name in names {
      var known = times[name, default: Times()]
      if andBelow { known.andBelow = max(known.andBelow, time) } else { known.alone = max(known.alone, time) }
      times[name] = known
    }
    guard times.count > FlushLog.most else { return }
    // Merge the older half into a flush of everything: too much is flushed rather than too little.
    let sorted = times.values.map(\.latest).sorted()
    recordEverything(until: sorted[sorted.count / 2])
  }

  private mutating func recordEverything(until time: Int64) {
    everythingUntil = time
    times = times.filter { $0.value.latest > time }
  }

  /// Whether a flush covers a value, that is, its provider was asked at or before the cut-off of its name.
  ///
  /// - Parameters:
  ///   - name: in lower case.
  ///   - stored: when the provider was asked, in milliseconds of the store's clock.
  /// - Complexity: O(n) in the labels of the name.
  public func covers(_ name: DomainName, stored: Int64) -> Bool {
    if stored <= everythingUntil { return true }
    guard !times.isEmpty else { return false }
    if let known = times[name], stored <= known.latest { return true }
    var ancestor = name.parent
    while let name = ancestor {
      if let known = times[name], stored <= known.andBelow { return true }
      ancestor = name.parent
    }
    return false
  }
}
