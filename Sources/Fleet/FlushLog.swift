// FlushLog.swift -- which names were flushed when, for all daemons of a fleet.

import DNSWire

/// What a flush removes.
public enum FlushedNames: Hashable, Sendable {
  /// Everything.
  case everything
  /// Some names, and what is below them if that is wanted.
  case names([DomainName], andBelow: Bool)

  /// Whether it covers a name in lower case.
  public func covers(_ name: DomainName) -> Bool {
    switch self {
    case .everything: true
    case .names(let names, let andBelow):
      names.contains { $0 == name || andBelow && name.isAtOrBelow($0) }
    }
  }
}

/// A flush as it lies in the stream: who sent it, and what it removes.
///
///   version (1 octet), form (1: 0 plain, 1 sealed), then in the clear or sealed: kind (1: 0 everything, 1 names, 2 names
///   and below), sender (16), sent (8), number of names (2), names in wire form
public struct FlushNote: Equatable, Sendable {
  /// The most names in one flush: a command has no more, and an entry of the stream has to be less than 64 KiB.
  public static let mostNames = 256

  /// What it removes.
  public var names: FlushedNames
  /// The daemon that sent it: 16 octets.
  public var sender: [UInt8]
  /// When it was sent, in milliseconds of the store's clock, and later than the sender's note before.
  public var sentAt: Int64

  /// How far an entry's time in the stream may be behind that of its note, in milliseconds.
  private static let longestWay: Int64 = 1_000

  /// Creates a note.
  public init(names: FlushedNames, sender: [UInt8], sentAt: Int64) {
    self.names = names
    self.sender = sender
    self.sentAt = sentAt
  }

  /// Until when what was asked for is flushed, in milliseconds of the store's clock. An entry that somebody has added to the
  /// stream again, as it can be read there, flushes nothing that its first one did not.
  ///
  /// - Parameter added: the time of its entry in the stream.
  public func end(addedAt added: Int64) -> Int64 { min(added, sentAt + FlushNote.longestWay) }

  /// The octets for the stream.
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

  /// Reads the octets of the stream; nil if they are no flush, or not sealed with this secret.
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

  /// The times that a note may have: far from the ends of their type.
  private static let times = 0...(Int64.max / 4)

  /// The index behind the root label of the name at the beginning.
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

/// Which sealed notes are new. Each daemon's notes have ascending times. A stranger with access to the store can add any number
/// of recorded ones to the stream again.
public struct NoteOrder: Sendable {
  /// The most daemons that are remembered one by one.
  static let most = 1_000

  /// The times of the latest notes.
  private var latest: [[UInt8]: Int64] = [:]
  /// The time of the latest note of a daemon that was forgotten. Of those that are not known, only later notes are new.
  private var floor = Int64.min

  /// Remembers nothing.
  public init() {}

  /// Remembers a note; returns whether it is new.
  public mutating func insert(_ note: FlushNote) -> Bool {
    guard note.sentAt > latest[note.sender, default: floor] else { return false }
    latest[note.sender] = note.sentAt
    guard latest.count > NoteOrder.most, let oldest = latest.min(by: { $0.value < $1.value }) else { return true }
    floor = max(floor, oldest.value)
    latest[oldest.key] = nil
    return true
  }
}

/// The flushes of a fleet that values of the store may be older than.
public struct FlushLog: Sendable {
  /// The most names that are remembered one by one.
  static let most = 4_096

  /// When a name was last flushed, alone and with what is below it.
  private struct Times {
    var alone = Int64.min
    var andBelow = Int64.min
    var latest: Int64 { max(alone, andBelow) }
  }

  private var times: [DomainName: Times] = [:]
  /// Everything that is not newer than this was flushed.
  private var everythingUntil = Int64.min

  /// Creates an empty log.
  public init() {}

  /// Notes a flush.
  ///
  /// - Parameter time: milliseconds of the store's clock.
  /// - Complexity: O(n) in the names of the flush; rarely in all names that are remembered.
  public mutating func record(_ names: FlushedNames, at time: Int64) {
    guard time > everythingUntil else { return }
    guard case .names(let names, let andBelow) = names else { return recordEverything(until: time) }
    for name in names {
      var known = times[name, default: Times()]
      if andBelow { known.andBelow = max(known.andBelow, time) } else { known.alone = max(known.alone, time) }
      times[name] = known
    }
    guard times.count > FlushLog.most else { return }
    // What cannot be remembered name by name counts for all names: the older half.
    let sorted = times.values.map(\.latest).sorted()
    recordEverything(until: sorted[sorted.count / 2])
  }

  private mutating func recordEverything(until time: Int64) {
    everythingUntil = time
    times = times.filter { $0.value.latest > time }
  }

  /// Whether a value for a name was flushed after its question had been sent.
  ///
  /// - Parameters:
  ///   - name: in lower case.
  ///   - stored: milliseconds of the store's clock.
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
