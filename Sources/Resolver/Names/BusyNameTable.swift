// BusyNameTable.swift -- counters for a bounded number of names: those that are busy stay, others make room.
//
// Pure. What is busy decays: each time that names make room, what was counted before weighs an eighth less.

/// Counters by name and type, for the busiest.
public struct BusyNameTable: Sendable {
  /// A name and type, and what was counted.
  public struct Row: Sendable {
    /// QNAME in lower case and wire form.
    public let name: [UInt8]
    /// QTYPE; 0 for the denial of the name, which holds for every type.
    public let type: UInt16
    /// Since when it is counted, as the caller's clock has it.
    public let since: Int64
    /// What was counted since.
    public var counts = NameCounts()
    /// What the caller remembers of it: the hash of the key of its last entry in the cache; 0 for none.
    public var entry: UInt64 = 0
    /// Hits that the caller has counted, or will count, twice.
    public var inherited: UInt64 = 0
    /// Activity that was weighed already, and what is left of its weight.
    fileprivate var weighed: UInt64 = 0
    fileprivate var weight = 0.0
    /// What it weighed when names made room last.
    fileprivate var standing = 0.0
  }

  /// Names and types that are kept when others make room.
  public let most: Int
  /// What a name that is not here must have been used for to be worth a row: as much as the least busy one that stayed.
  public private(set) var threshold: UInt64 = 0
  private var rows: [UInt64: Row] = [:]

  /// What is left of a weight each time that names make room: with less, a name that is asked for steadily but not often would
  /// hardly be told from one that is asked for once.
  private static let decay = 0.875

  /// An empty table.
  public init(most: Int) {
    self.most = max(1, most)
  }

  /// How many names and types there are: up to half as many again as `most`.
  public var count: Int { rows.count }

  /// Whether `prune` is due.
  public var isFull: Bool { rows.count >= most + most / 2 }

  /// The rows, in no particular order.
  public var all: some Collection<Row> { rows.values }

  /// Whether there is a row of that key.
  public func contains(_ key: UInt64) -> Bool { rows[key] != nil }

  /// The row of that key.
  public subscript(key: UInt64) -> Row? { rows[key] }

  /// Changes a row; false where there is none.
  @discardableResult
  public mutating func change(_ key: UInt64, _ body: (inout Row) -> Void) -> Bool {
    guard let index = rows.index(forKey: key) else { return false }
    body(&rows.values[index])
    return true
  }

  /// Changes a row, which is made where there is none.
  ///
  /// - Parameter key: stands for name and type; two names have two.
  public mutating func count(_ key: UInt64, name: [UInt8], type: UInt16, now: Int64, _ body: (inout Row) -> Void) {
    body(&rows[key, default: Row(name: name, type: type, since: now)])
  }

  /// The least busy names make room.
  ///
  /// - Parameter live: hits of a row that were not counted in it yet.
  /// - Complexity: O(n log n); it is due once in `most / 2` names that are new.
  public mutating func prune(live: (Row) -> UInt64) {
    guard rows.count > most else { return }
    var index = rows.values.startIndex
    while index != rows.values.endIndex {
      rows.values[index].weigh(live: live(rows.values[index]), decay: BusyNameTable.decay)
      rows.values.formIndex(after: &index)
    }
    let standings = rows.values.map(\.standing).sorted(by: >)
    let least = standings[most - 1]
    // Of those that weigh just as much as the last one that stays, as many as there is room for.
    var room = most - standings.prefix { $0 > least }.count
    rows = rows.filter { _, row in
      guard row.standing == least else { return row.standing > least }
      room -= 1
      return room >= 0
    }
    threshold = UInt64(least)
  }

  /// Forgets everything.
  public mutating func removeAll() { rows = [:] }
}

extension BusyNameTable.Row {
  /// Finds what the row weighs now, and lets what was counted until now decay.
  fileprivate mutating func weigh(live: UInt64, decay: Double) {
    let activity = counts.activity
    let counted = weight + Double(activity - weighed)
    weight = counted * decay
    weighed = activity
    standing = counted + Double(live)
  }
}
