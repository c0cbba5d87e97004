// ClientPrefixes.swift -- clients' prefixes, compared as integers on the hot path.

import DNSWire

/// Prefixes in an order, in immutable memory that the owner frees.
public struct ClientPrefixes {
  @usableFromInline struct Prefix {
    @usableFromInline let isIPv6: Bool
    @usableFromInline let high: UInt64
    @usableFromInline let low: UInt64
    @usableFromInline let highMask: UInt64
    @usableFromInline let lowMask: UInt64
  }

  @usableFromInline let prefixes: UnsafeMutablePointer<Prefix>
  public let count: Int

  public init(_ list: [IPPrefix]) {
    count = list.count
    prefixes = .allocate(capacity: max(1, list.count))
    for (index, prefix) in list.enumerated() {
      let isIPv6 = prefix.address.isIPv6
      let octets = prefix.address.octets + [UInt8](repeating: 0, count: isIPv6 ? 0 : 12)
      (prefixes + index).initialize(
        to: Prefix(
          isIPv6: isIPv6, high: ClientPrefixes.number(octets[..<8]), low: ClientPrefixes.number(octets[8...]),
          highMask: ClientPrefixes.mask(prefix.length), lowMask: ClientPrefixes.mask(prefix.length - 64)))
    }
  }

  /// Frees the memory.
  public func deallocate() { prefixes.deallocate() }

  /// The index of the first prefix that contains an address; `count` if none does. An IPv4-mapped IPv6 address is an IPv6
  /// one: see `IPNumber.unmapped`.
  @_noAllocation @inlinable
  public func firstIndex(containing client: IPNumber) -> Int {
    var index = 0
    while index < count {
      let prefix = prefixes + index
      if prefix.pointee.isIPv6 == client.isIPv6, client.high & prefix.pointee.highMask == prefix.pointee.high,
        client.low & prefix.pointee.lowMask == prefix.pointee.low
      {
        return index
      }
      index &+= 1
    }
    return count
  }

  private static func number(_ octets: ArraySlice<UInt8>) -> UInt64 { octets.reduce(0) { $0 << 8 | UInt64($1) } }

  private static func mask(_ bits: Int) -> UInt64 { bits <= 0 ? 0 : bits >= 64 ? .max : ~(UInt64.max >> UInt64(bits)) }
}
