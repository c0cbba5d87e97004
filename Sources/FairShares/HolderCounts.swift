// HolderCounts.swift -- counts per client how many of a fixed number of things it holds, in a fixed amount of memory.
//
// Exact: there are at least twice as many rows as things, so probe sequences are short and always end.

/// Counts by client. Not thread-safe.
public struct HolderCounts: ~Copyable {
  private struct Row {
    var key: UInt64
    var count: Int32
  }

  private let rows: UnsafeMutablePointer<Row>
  private let mask: Int
  private let seed: UInt64

  /// - Parameter things: the largest sum of all counts.
  public init(things: Int, seed: UInt64 = .random(in: 0 ... .max)) {
    var size = 8
    while size < 2 * things { size *= 2 }
    mask = size - 1
    self.seed = seed
    rows = .allocate(capacity: size)
    rows.initialize(repeating: Row(key: 0, count: 0), count: size)
  }

  deinit { rows.deallocate() }

  @_noAllocation
  public func count(_ client: ClientKey) -> Int { Int(rows[place(client.value)].count) }

  /// Increments the count of a client.
  @_noAllocation
  public func add(_ client: ClientKey) {
    let row = rows + place(client.value)
    row.pointee.key = client.value
    row.pointee.count &+= 1
  }

  /// Decrements the count of a client, which must not be 0.
  @_noAllocation
  public func remove(_ client: ClientKey) {
    var hole = place(client.value)
    rows[hole].count &-= 1
    guard rows[hole].count <= 0 else { return }
    // Later rows of the probe sequence move up, because a search would stop at the hole.
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

  /// The row of a client, or the free one for it.
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
