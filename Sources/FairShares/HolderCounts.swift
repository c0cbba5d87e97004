// HolderCounts.swift -- how many of a fixed number of things each client has, in memory of a fixed size. Not thread-safe.
//
// Exact: there are at least twice as many rows as things, so a chain is short and always ends.

/// Counts by client. Whoever uses it holds a lock, or is the only thread.
public struct HolderCounts: ~Copyable {
  private struct Row {
    var key: UInt64
    var count: Int32
  }

  private let rows: UnsafeMutablePointer<Row>
  private let mask: Int
  private let seed: UInt64

  /// Nobody has anything.
  ///
  /// - Parameter things: how many there are at most.
  public init(things: Int, seed: UInt64 = .random(in: 0 ... .max)) {
    var size = 8
    while size < 2 * things { size *= 2 }
    mask = size - 1
    self.seed = seed
    rows = .allocate(capacity: size)
    rows.initialize(repeating: Row(key: 0, count: 0), count: size)
  }

  deinit { rows.deallocate() }

  /// How many the client has.
  @_noAllocation
  public func count(_ client: ClientKey) -> Int { Int(rows[place(client.value)].count) }

  /// The client has one more.
  @_noAllocation
  public func add(_ client: ClientKey) {
    let row = rows + place(client.value)
    row.pointee.key = client.value
    row.pointee.count &+= 1
  }

  /// The client has one less. It has had one.
  @_noAllocation
  public func remove(_ client: ClientKey) {
    var hole = place(client.value)
    rows[hole].count &-= 1
    guard rows[hole].count <= 0 else { return }
    // Those behind it move up where they would not be found any more.
    var next = (hole &+ 1) & mask
    while rows[next].count > 0 {
      let home = home(rows[next].key)
      if (next &- home) & mask >= (next &- hole) & mask {
        rows[hole] = rows[next]
        hole = next
      }
      next = (next &+ 1) & mask
    }
    rows[hole].count = 0
  }

  /// The client's row, or the free one where it would be.
  @_noAllocation
  private func place(_ key: UInt64) -> Int {
    var place = home(key)
    while rows[place].count > 0, rows[place].key != key { place = (place &+ 1) & mask }
    return place
  }

  @_noAllocation @inline(__always)
  private func home(_ key: UInt64) -> Int {
    let product = (key ^ seed).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
    return Int(truncatingIfNeeded: (product.high ^ product.low) >> 7) & mask
  }
}
