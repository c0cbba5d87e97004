// ListKey.swift -- the keyed hash of a name's suffixes, from the last label to the first.
//
// Lists are written by strangers, and queries are asked by them. Without the key neither can search for two names with
// the same hash.

/// A random key.
public struct ListKey: Sendable {
  let start: UInt64
  let step: UInt64
  let end: UInt64

  public init() {
    var generator = SystemRandomNumberGenerator()
    (start, step, end) = (generator.next(), generator.next() | 1, generator.next() | 1)
  }

  /// The hash of a whole name.
  func hash(_ name: ListedName) -> UInt64 {
    var state = start
    var depth = name.labelCount
    while depth > 0 {
      depth -= 1
      state = extended(state, by: name.octets + Int(name.starts[depth]))
    }
    return finished(state)
  }

  /// The state for a suffix that is one label longer.
  ///
  /// - Parameter label: with its length octet, in lower case.
  @_noAllocation @inline(__always)
  func extended(_ state: UInt64, by label: UnsafePointer<UInt8>) -> UInt64 {
    // The length octet is hashed too, so that octets which are read twice tell no two labels apart wrongly.
    let octets = UnsafeRawPointer(label)
    let count = Int(label[0]) &+ 1
    if count < 4 {
      let few = UInt64(label[0]) &<< 16 | UInt64(label[1]) &<< 8 | UInt64(label[count &- 1])
      return ListKey.fold(state ^ few, step)
    }
    if count < 8 {
      let first = UInt64(octets.loadUnaligned(as: UInt32.self))
      let last = UInt64((octets + (count &- 4)).loadUnaligned(as: UInt32.self))
      return ListKey.fold(state ^ (first | last &<< 32), step)
    }
    var state = state
    var index = 0
    while index &+ 8 < count {
      state = ListKey.fold(state ^ (octets + index).loadUnaligned(as: UInt64.self), step)
      index &+= 8
    }
    return ListKey.fold(state ^ (octets + (count &- 8)).loadUnaligned(as: UInt64.self), step)
  }

  @_noAllocation @inline(__always)
  func finished(_ state: UInt64) -> UInt64 { ListKey.fold(state ^ start, end) }

  /// Both halves of a product, so that every bit of the factors reaches every bit of the result.
  @_noAllocation @inline(__always)
  private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }
}
