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
    let count = Int(label[0]) &+ 1
    var state = state
    var index = 0
    while index &+ 8 <= count {
      state = ListKey.fold(state ^ UnsafeRawPointer(label + index).loadUnaligned(as: UInt64.self), step)
      index &+= 8
    }
    var rest: UInt64 = 0
    while index < count {
      rest = rest &<< 8 | UInt64(label[index])
      index &+= 1
    }
    return ListKey.fold(state ^ rest, step) &+ UInt64(truncatingIfNeeded: count)
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
