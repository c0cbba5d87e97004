// WriteQueue.swift -- values to be written to the store. No client waits for them.

/// A bounded first-in, first-out queue. When it is full, the oldest values are dropped.
public struct WriteQueue: Sendable {
  /// One value to write.
  public struct Write: Hashable, Sendable {
    /// The question that the value answers.
    public var question: FleetQuestion
    /// The key in the store.
    public var key: [UInt8]
    /// The value as composed.
    public var value: [UInt8]
    /// The store's expiry (`PX`), in milliseconds.
    public var lifetime: Int64

    fileprivate var octets: Int { key.count + value.count }
  }

  public static let mostValues = 1_024
  /// The most octets of all keys and values.
  public static let mostOctets = 1 << 20

  private var writes: [Write?] = []
  private var first = 0
  private var octets = 0
  /// How many values were dropped since the start.
  public private(set) var dropped: UInt64 = 0

  public var isEmpty: Bool { first == writes.count }
  /// The number of queued values.
  public var count: Int { writes.count - first }

  /// Adds a value.
  ///
  /// - Returns: the values that were dropped to make room; the caller releases their leases.
  /// - Complexity: O(1) amortized.
  public mutating func add(_ write: Write) -> [Write] {
    writes.append(write)
    octets += write.octets
    var removed: [Write] = []
    while count > WriteQueue.mostValues || octets > WriteQueue.mostOctets, let oldest = next() {
      removed.append(oldest)
    }
    dropped += UInt64(removed.count)
    return removed
  }

  /// Drops all values.
  ///
  /// - Returns: the dropped values.
  public mutating func removeAll() -> [Write] {
    let removed = writes.compactMap(\.self)
    (writes, first, octets) = ([], 0, 0)
    dropped += UInt64(removed.count)
    return removed
  }

  /// Removes and returns the oldest value; nil if the queue is empty.
  public mutating func next() -> Write? {
    guard !isEmpty, let write = writes[first] else { return nil }
    writes[first] = nil
    octets -= write.octets
    first += 1
    if first == writes.count {
      (writes, first) = ([], 0)
    } else if first >= WriteQueue.mostValues {
      writes.removeFirst(first)
      first = 0
    }
    return write
  }
}
