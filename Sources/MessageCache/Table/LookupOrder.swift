// LookupOrder.swift -- the order in which entries answer a question; hot and cold path both follow it.

/// An entry that can answer a question.
@frozen
public enum LookupStep: UInt8, Sendable {
  /// The answer for the client's own subnet, the most specific one (RFC 7871 section 7.3.1).
  case subnet
  /// The answer for all clients. For a query with a client subnet only if it is valid for every subnet.
  case shared
  /// NXDOMAIN for the name, which is valid for every type (RFC 2308 section 5). For subnets like `shared`.
  case nameError
}

/// Walks through the entries that can answer a question, in order of preference.
///
/// A fresh entry ends the walk: the first one in the order of `LookupStep` answers. If no entry is fresh, the one that was
/// stored last may be served as stale data (RFC 8767 section 4), since it is the last that an upstream said; of two that
/// were stored together, the later one in the order.
@frozen
public struct LookupOrder {
  @usableFromInline var step: LookupStep?
  @usableFromInline var newest: Int64 = .min
  @usableFromInline var newestStep = LookupStep.shared
  @usableFromInline var newestIsServed = false

  /// Begins a walk.
  ///
  /// - Parameter usesSubnet: whether the answer may depend on the client's subnet.
  @_noAllocation @inlinable
  public init(usesSubnet: Bool) { step = usesSubnet ? .subnet : .shared }

  /// The next entry to look up; nil at the end of the walk.
  @_noAllocation @inlinable
  public mutating func next() -> LookupStep? {
    let current = step
    switch current {
    case .subnet: step = .shared
    case .shared: step = .nameError
    case .nameError, nil: step = nil
    }
    return current
  }

  /// Notes that an entry of the walk has expired. A miss is not noted.
  ///
  /// - Parameters:
  ///   - storedAt: the time of storage in nanoseconds of the boot-time clock.
  ///   - isServed: whether it may currently be served as stale data.
  /// - Returns: whether it is the newest so far.
  @_noAllocation @inlinable @discardableResult
  public mutating func noteExpired(_ entry: LookupStep, storedAt: Int64, isServed: Bool) -> Bool {
    guard storedAt >= newest else { return false }
    newest = storedAt
    newestStep = entry
    newestIsServed = isServed
    return true
  }

  /// The entry to serve as stale data after a walk without a fresh entry; nil if the newest one must not be served.
  @inlinable
  public var stale: LookupStep? { @_noAllocation get { newestIsServed ? newestStep : nil } }
}
