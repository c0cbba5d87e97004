// FlushLog.swift -- which names were flushed when, for all daemons of a site.

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
///   and below), sender (16), number of names (2), names in wire form
public struct FlushNote: Hashable, Sendable {
  /// The most names in one flush.
  public static let mostNames = 1_000

  /// What it removes.
  public var names: FlushedNames
  /// The daemon that sent it: 16 octets.
  public var sender: [UInt8]

  /// Creates a note.
  public init(names: FlushedNames, sender: [UInt8]) {
    self.names = names
    self.sender = sender
  }

  /// The octets for the stream.
  public func octets(_ keys: FleetKeys) -> [UInt8] {
    var (kind, listed): (UInt8, [DomainName]) = (0, [])
    if case .names(let names, let andBelow) = names { (kind, listed) = (andBelow ? 2 : 1, names) }
    var body = [kind] + sender + [UInt8(listed.count >> 8), UInt8(listed.count & 0xFF)]
    for name in listed { body += name.octets }
    let sealed = keys.sealFlush(body)
    return [FleetKeys.version, sealed == nil ? 0 : 1] + (sealed ?? body)
  }

  /// Reads the octets of the stream; nil if they are no flush, or not sealed with this secret.
  public init?(_ octets: [UInt8], _ keys: FleetKeys) {
    guard octets.count > 2, octets[0] == FleetKeys.version, (octets[1] == 1) == keys.hasSecret else { return nil }
    guard let body = octets[1] == 1 ? keys.openFlush(octets[2...]) : Array(octets[2...]) else { return nil }
    guard body.count >= 19, body[0] <= 2 else { return nil }
    sender = Array(body[1..<17])
    let count = Int(body[17]) << 8 | Int(body[18])
    guard count <= FlushNote.mostNames, (count == 0) == (body[0] == 0) else { return nil }
    var rest = body[19...]
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

/// The flushes of a site that values of the store may be older than.
public struct FlushLog: Sendable {
  /// The most flushes that are remembered one by one.
  static let most = 1_000

  private var flushes: [(at: Int64, names: FlushedNames)] = []
  /// Everything that is not newer than this was flushed.
  private var everythingUntil = Int64.min

  /// Creates an empty log.
  public init() {}

  /// Notes a flush.
  ///
  /// - Parameter time: milliseconds of the store's clock.
  public mutating func note(_ names: FlushedNames, at time: Int64) {
    if names == .everything {
      everythingUntil = max(everythingUntil, time)
      flushes.removeAll { $0.at <= everythingUntil }
      return
    }
    guard time > everythingUntil else { return }
    flushes.append((time, names))
    guard flushes.count > FlushLog.most else { return }
    // What cannot be remembered name by name counts for all names.
    let oldest = flushes.removeFirst()
    everythingUntil = max(everythingUntil, oldest.at)
  }

  /// Forgets flushes that no living value can be older than.
  ///
  /// - Parameter time: milliseconds of the store's clock.
  public mutating func forget(before time: Int64) { flushes.removeAll { $0.at < time } }

  /// Whether a value for a name was flushed after its question had been sent.
  ///
  /// - Parameter stored: milliseconds of the store's clock.
  public func covers(_ name: DomainName, stored: Int64) -> Bool {
    stored <= everythingUntil || flushes.contains { stored <= $0.at && $0.names.covers(name) }
  }
}
