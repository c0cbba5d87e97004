// RouteSet.swift -- a set of route numbers, for the hot path.

/// A set of route numbers, as a table of Booleans in separate memory. Immutable.
package final class RouteSet: @unchecked Sendable {
  private let bits: UnsafeMutablePointer<Bool>
  private let count: Int

  package init(_ routes: some Sequence<UInt16>, count: Int) {
    self.count = count
    bits = .allocate(capacity: max(1, count))
    bits.initialize(repeating: false, count: max(1, count))
    for route in routes { bits[Int(route)] = true }
  }

  deinit { bits.deallocate() }

  @_noAllocation
  func contains(_ route: UInt16) -> Bool {
    guard Int(route) < count else { return false }
    return bits[Int(route)]
  }
}
