// AccessPolicy.swift -- who may ask: a short list of prefixes, compared as numbers on the hot path.

import CSocket
import DNSWire
import Glibc

/// The prefixes of `listen.allow`. Immutable; shared by every thread.
public final class AccessPolicy: @unchecked Sendable {
  private struct Prefix {
    var isIPv6: Bool
    var high: UInt64
    var low: UInt64
    var highMask: UInt64
    var lowMask: UInt64
  }

  private let prefixes: UnsafeMutablePointer<Prefix>
  private let count: Int

  /// A policy that allows the addresses in any of the prefixes.
  public init(_ allowed: [IPPrefix]) {
    count = allowed.count
    prefixes = .allocate(capacity: max(1, allowed.count))
    for (index, prefix) in allowed.enumerated() {
      let isIPv6 = prefix.address.isIPv6
      let octets = prefix.address.octets + [UInt8](repeating: 0, count: isIPv6 ? 0 : 12)
      (prefixes + index).initialize(
        to: Prefix(
          isIPv6: isIPv6, high: AccessPolicy.number(octets[..<8]), low: AccessPolicy.number(octets[8...]),
          highMask: AccessPolicy.mask(prefix.length), lowMask: AccessPolicy.mask(prefix.length - 64)))
    }
  }

  deinit { prefixes.deallocate() }

  /// Whether a query from that address is answered; an IPv4-mapped IPv6 address counts as the IPv4 one.
  @_noAllocation
  func allows(_ address: UnsafePointer<sockaddr_storage>) -> Bool {
    let raw = UnsafeRawPointer(address)
    var isIPv6 = raw.load(as: sa_family_t.self) == 10
    var high: UInt64
    var low: UInt64 = 0
    if isIPv6 {
      high = UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      low = UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
      if high == 0, low >> 32 == 0xFFFF {
        isIPv6 = false
        high = low << 32
        low = 0
      }
    } else {
      high = UInt64(UInt32(bigEndian: raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self))) << 32
    }
    var index = 0
    while index < count {
      let prefix = prefixes + index
      if prefix.pointee.isIPv6 == isIPv6, high & prefix.pointee.highMask == prefix.pointee.high,
        low & prefix.pointee.lowMask == prefix.pointee.low
      {
        return true
      }
      index &+= 1
    }
    return false
  }

  private static func number(_ octets: ArraySlice<UInt8>) -> UInt64 { octets.reduce(0) { $0 << 8 | UInt64($1) } }

  private static func mask(_ bits: Int) -> UInt64 { bits <= 0 ? 0 : bits >= 64 ? .max : ~(UInt64.max >> UInt64(bits)) }
}

extension AccessPolicy {
  /// The networks that the machine's interfaces are on at present: what `"connected"` stands for.
  public static func connectedNetworks() -> [IPPrefix] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var networks: [IPPrefix] = []
    var next = list
    while let entry = next {
      next = entry.pointee.ifa_next
      guard let address = octets(entry.pointee.ifa_addr), let mask = octets(entry.pointee.ifa_netmask) else { continue }
      let length = mask.reduce(0) { $0 + $1.nonzeroBitCount }
      if let prefix = IPAddress(octets: address).flatMap({ IPPrefix($0, length: length) }) { networks.append(prefix) }
    }
    return networks
  }

  private static func octets(_ address: UnsafeMutablePointer<sockaddr>?) -> [UInt8]? {
    guard let address else { return nil }
    let raw = UnsafeRawBufferPointer(start: address, count: MemoryLayout<sockaddr_in6>.size)
    switch Int32(raw.load(as: sa_family_t.self)) {
    case AF_INET: return Array(raw[4..<8])
    case AF_INET6: return Array(raw[8..<24])
    default: return nil
    }
  }
}
