// IPNumber.swift -- the IP address in a socket address, for comparisons without allocation.

import Glibc

/// An IP address as two numbers.
public struct IPNumber: Hashable, Sendable {
  /// The first eight octets of the address as a big-endian number; of an IPv4 address, its octets and zeros.
  public var high: UInt64
  /// The last eight octets of an IPv6 address as a big-endian number.
  public var low: UInt64
  /// The family; an IPv4-mapped IPv6 address is an IPv6 one.
  public var isIPv6: Bool

  /// The IPv4 address 0.0.0.0.
  @_noAllocation @inlinable
  public init() {
    (high, low, isIPv6) = (0, 0, false)
  }

  /// The address in the kernel's form: a `sockaddr_in6` or, for any other family, a `sockaddr_in`.
  @_noAllocation @inlinable
  public init(_ address: UnsafeRawPointer) {
    isIPv6 = address.load(as: sa_family_t.self) == sa_family_t(truncatingIfNeeded: AF_INET6)
    if isIPv6 {
      high = UInt64(bigEndian: address.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      low = UInt64(bigEndian: address.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
    } else {
      high = UInt64(UInt32(bigEndian: address.loadUnaligned(fromByteOffset: 4, as: UInt32.self))) << 32
      low = 0
    }
  }

  /// The address of 4 or 16 octets in network order.
  public init(octets: some Collection<UInt8>) {
    isIPv6 = octets.count == 16
    high = octets.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } << (isIPv6 ? 0 : 32)
    low = octets.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The same address; an IPv4-mapped IPv6 address as the IPv4 one.
  @inlinable public var unmapped: IPNumber {
    @_noAllocation get {
      guard isIPv6, high == 0, low >> 32 == 0xFFFF else { return self }
      var address = IPNumber()
      address.high = low << 32
      return address
    }
  }

  /// The port in the kernel's form of an address, in host order.
  public static func port(_ address: UnsafeRawPointer) -> UInt16 {
    UInt16(bigEndian: address.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
  }

  /// The address, 4 or 16 octets in network order.
  public var octets: [UInt8] {
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Array($0.prefix(isIPv6 ? 16 : 4)) }
  }
}
