// FlushBatch.swift -- merges flushes, so that one pass through the cache carries out all of them.

import DNSWire

/// Several flushes merged into at most three. The result may flush more than the originals: merged names share the
/// latest cut-off, and more than 20,000 names become a flush of everything.
public struct FlushBatch: Sendable {
  /// The most names; more become a flush of everything.
  static let most = 20_000

  private var everythingUntil: Int64?
  private var alone = Part()
  private var andBelow = Part()
  /// The number of flushes that were added.
  public private(set) var count: UInt64 = 0

  private struct Part {
    var names: Set<DomainName> = []
    var until = Int64.min
  }

  /// Whether no flush was added.
  public var isEmpty: Bool { count == 0 }

  /// - Parameter time: the cut-off, in milliseconds of the store's clock.
  public mutating func add(_ names: FlushedNames, until time: Int64) {
    count += 1
    switch names {
    case .everything: everythingUntil = max(everythingUntil ?? .min, time)
    case .names(let names, true): FlushBatch.add(names, time, to: &andBelow)
    case .names(let names, false): FlushBatch.add(names, time, to: &alone)
    }
    guard alone.names.count + andBelow.names.count > FlushBatch.most else { return }
    everythingUntil = max(everythingUntil ?? .min, alone.until, andBelow.until)
    (alone, andBelow) = (Part(), Part())
  }

  /// Adds the flushes of another batch.
  public mutating func add(_ other: FlushBatch) {
    let before = count
    for (names, time) in other.parts { add(names, until: time) }
    count = before + other.count
  }

  private static func add(_ names: [DomainName], _ time: Int64, to part: inout Part) {
    part.names.formUnion(names)
    part.until = max(part.until, time)
  }

  /// The merged flushes with their cut-offs in milliseconds of the store's clock; at most three.
  public var parts: [(names: FlushedNames, until: Int64)] {
    var parts: [(FlushedNames, Int64)] = []
    if let everythingUntil { parts.append((.everything, everythingUntil)) }
    for (part, isBelow) in [(alone, false), (andBelow, true)] where !part.names.isEmpty {
      parts.append((.names(Array(part.names), andBelow: isBelow), part.until))
    }
    return parts
  }
}
