// IPAddress.swift -- an IPv4 or IPv6 address and a prefix, as octets and as text.

import Glibc

/// An IPv4 or IPv6 address.
public struct IPAddress: Hashable, Sendable {
  /// 4 octets of IPv4 or 16 of IPv6, in network order.
  public let octets: [UInt8]

  public var isIPv6: Bool { octets.count == 16 }

  /// Whether the address is in 127.0.0.0/8 or is ::1.
  public var isLoopback: Bool {
    isIPv6 ? octets.dropLast().allSatisfy { $0 == 0 } && octets[15] == 1 : octets[0] == 127
  }

  /// Whether the address is in fe80::/10, so that it means something on one interface only (RFC 4007).
  public var isLinkLocal: Bool { isIPv6 && octets[0] == 0xFE && octets[1] & 0xC0 == 0x80 }

  /// Whether it may be a host on another network: not this network with the unspecified address, loopback, link-local,
  /// multicast or broadcast. An IPv4-mapped address counts as the IPv4 one.
  public var isRoutable: Bool {
    let octets = unmapped.octets
    if octets.count == 16 { return !(isLoopback || isLinkLocal || octets[0] == 0xFF || octets.allSatisfy { $0 == 0 }) }
    switch octets[0] {
    case 0, 127, 224...239: return false
    case 169: return octets[1] != 254
    default: return !octets.allSatisfy { $0 == 255 }
    }
  }

  /// The beginning of ::ffff:0:0/96, IPv4 addresses in the form of IPv6 (RFC 4291 section 2.5.5.2).
  public static let mappedPrefix = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]

  /// The same address; an IPv4-mapped IPv6 address as the IPv4 one.
  public var unmapped: IPAddress {
    isIPv6 && octets.starts(with: IPAddress.mappedPrefix) ? IPAddress(octets: octets[12...])! : self
  }

  /// An address from 4 or 16 octets; nil for another number.
  public init?(octets: some Collection<UInt8>) {
    guard octets.count == 4 || octets.count == 16 else { return nil }
    self.octets = Array(octets)
  }

  /// An address from its text: four decimal numbers, or RFC 4291 section 2.2; no zone, no brackets.
  public init?(text: some StringProtocol) {
    var octets = [UInt8](repeating: 0, count: 16)
    let text = String(text)
    // inet_pton() would stop at a NUL and accept the text before it.
    guard !text.utf8.contains(0) else { return nil }
    if inet_pton(AF_INET, text, &octets) == 1 {
      self.octets = Array(octets[..<4])
    } else if inet_pton(AF_INET6, text, &octets) == 1 {
      self.octets = octets
    } else {
      return nil
    }
  }
}

extension IPAddress: CustomStringConvertible {
  /// The text; IPv6 in the form of RFC 5952.
  public var description: String {
    var text = [CChar](repeating: 0, count: 46)
    inet_ntop(isIPv6 ? AF_INET6 : AF_INET, octets, &text, 46)
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}

/// An address prefix such as `192.0.2.0/24`.
public struct IPPrefix: Hashable, Sendable {
  /// The address with all bits after the prefix cleared.
  public let address: IPAddress
  /// The length in bits: 0…32 or 0…128.
  public let length: Int

  /// The prefix of an address; nil if `length` exceeds the address.
  public init?(_ address: IPAddress, length: Int) {
    guard (0...(address.octets.count * 8)).contains(length) else { return nil }
    var octets = address.octets
    for index in octets.indices {
      let bits = min(8, max(0, length - index * 8))
      octets[index] &= UInt8(truncatingIfNeeded: 0xFF00 >> bits)
    }
    self.address = IPAddress(octets: octets)!
    self.length = length
  }

  /// A prefix from text: `address/length`, or an address alone, which is a prefix of full length.
  public init?(text: some StringProtocol) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = IPAddress(text: parts[0]) else { return nil }
    guard parts.count == 2 else {
      self.init(address, length: address.octets.count * 8)
      return
    }
    guard !parts[1].isEmpty, parts[1].utf8.allSatisfy(isDigit), let length = Int(parts[1]) else { return nil }
    self.init(address, length: length)
  }

  /// Whether the address is of this family and inside the prefix.
  public func contains(_ other: IPAddress) -> Bool {
    other.octets.count == address.octets.count && IPPrefix(other, length: length)?.address == address
  }
}

extension IPPrefix: CustomStringConvertible {
  /// `address/length`.
  public var description: String { "\(address)/\(length)" }
}
