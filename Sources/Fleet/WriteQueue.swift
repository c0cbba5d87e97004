// WriteQueue.swift -- values on their way to the store, which no client waits for.

/// Values in the order in which they came, within bounds: the oldest make room.
public struct WriteQueue: Sendable {
  /// A value and its key.
  public struct Write: Hashable, Sendable {
    /// The question that it answers.
    public var question: FleetQuestion
    /// The key.
    public var key: [UInt8]
    /// The value.
    public var value: [UInt8]
    /// For how long the store keeps it, in milliseconds.
    public var lifetime: Int64

    /// Creates a write.
    public init(question: FleetQuestion, key: [UInt8], value: [UInt8], lifetime: Int64) {
      self.question = question
      self.key = key
      self.value = value
      self.lifetime = lifetime
    }

    fileprivate var octets: Int { key.count + value.count }
  }

  /// The most values.
  public static let mostValues = 1_024
  /// The most octets of all values.
  public static let mostOctets = 1 << 20

  private var writes: [Write?] = []
  private var first = 0
  private var octets = 0
  /// Values that were dropped.
  public private(set) var dropped: UInt64 = 0

  /// Creates an empty queue.
  public init() {}

  /// Whether nothing waits.
  public var isEmpty: Bool { first == writes.count }
  /// The number of values that wait.
  public var count: Int { writes.count - first }

  /// Adds a value.
  ///
  /// - Returns: those that had to make room.
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
  /// - Returns: those.
  public mutating func removeAll() -> [Write] {
    let removed = writes.compactMap(\.self)
    (writes, first, octets) = ([], 0, 0)
    dropped += UInt64(removed.count)
    return removed
  }

  /// Takes the oldest value; nil if there is none.
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
