// BusyNameTable.swift -- counters for a limited number of names: the busiest stay, others are evicted.
//
// Pure. Activity decays: with each eviction, earlier counts weigh an eighth less.

/// Counters by name and type, for the busiest names.
package struct BusyNameTable: Sendable {
  /// A name and type with its counters.
  package struct Row: Sendable {
    /// QNAME in lower case and wire form.
    package let name: [UInt8]
    /// QTYPE; 0 for NXDOMAIN, which applies to every type.
    package let type: UInt16
    /// When counting began, in nanoseconds of the caller's clock.
    package let since: Int64
    package var counts = NameCounts()
    /// The caller's data: the hash of the key of its last cache entry; 0 for none.
    package var entry: UInt64 = 0
    /// Hits that the caller counts twice, and subtracts when it reports.
    package var inherited: UInt64 = 0
    /// The activity up to the last eviction, and its decayed weight.
    fileprivate var weighed: UInt64 = 0
    fileprivate var weight = 0.0
    /// The weight at the last eviction.
    fileprivate var standing = 0.0
  }

  /// The number of rows that remain after an eviction.
  package let most: Int
  /// The activity above which a new name deserves a row: that of the least busy row that stayed.
  package private(set) var threshold: UInt64 = 0
  private var rows: [UInt64: Row] = [:]

  /// The factor applied to a weight with each eviction. With a smaller one, a name that is queried steadily but rarely
  /// would look like one that is queried once.
  private static let decay = 0.875

  package init(most: Int) {
    self.most = max(1, most)
  }

  /// The number of rows, at most one and a half times `most`.
  package var count: Int { rows.count }

  /// Whether `prune` is due.
  package var isFull: Bool { rows.count >= most + most / 2 }

  /// The rows, in no particular order.
  package var all: some Collection<Row> { rows.values }

  /// Whether there is a row with that key.
  package func contains(_ key: UInt64) -> Bool { rows[key] != nil }

  /// The row with that key; nil if it does not exist.
  package subscript(key: UInt64) -> Row? { rows[key] }

  /// Changes a row; returns false if it does not exist.
  @discardableResult
  package mutating func change(_ key: UInt64, _ body: (inout Row) -> Void) -> Bool {
    guard let index = rows.index(forKey: key) else { return false }
    body(&rows.values[index])
    return true
  }

  /// Changes a row, and creates it if it does not exist.
  ///
  /// - Parameter key: identifies name and type.
  package mutating func count(_ key: UInt64, name: [UInt8], type: UInt16, now: Int64, _ body: (inout Row) -> Void) {
    body(&rows[key, default: Row(name: name, type: type, since: now)])
  }

  /// Evicts the least busy names.
  ///
  /// - Parameter live: returns the hits of a row that are not counted in it yet.
  /// - Complexity: O(n log n); due once per `most / 2` new names.
  package mutating func prune(live: (Row) -> UInt64) {
    guard rows.count > most else { return }
    var index = rows.values.startIndex
    while index != rows.values.endIndex {
      rows.values[index].weigh(live: live(rows.values[index]), decay: BusyNameTable.decay)
      rows.values.formIndex(after: &index)
    }
    let standings = rows.values.map(\.standing).sorted(by: >)
    let least = standings[most - 1]
    // Of the rows as busy as the last one that stays, only as many stay as there is room for.
    var room = most - standings.prefix { $0 > least }.count
    rows = rows.filter { _, row in
      guard row.standing == least else { return row.standing > least }
      room -= 1
      return room >= 0
    }
    threshold = UInt64(least)
  }

  package mutating func removeAll() { rows = [:] }
}

extension BusyNameTable.Row {
  /// Computes the current weight of the row and applies the decay.
  fileprivate mutating func weigh(live: UInt64, decay: Double) {
    let activity = counts.activity
    let counted = weight + Double(activity - weighed)
    weight = counted * decay
    weighed = activity
    standing = counted + Double(live)
  }
}
