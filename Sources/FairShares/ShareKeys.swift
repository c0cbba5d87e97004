// ShareKeys.swift -- the keys of shares: clients and domains.

import DNSWire
import Glibc
import PublicSuffixes

/// A client: an IPv4 address, or the /56 of an IPv6 one. An IPv4-mapped address is the IPv4 one.
public struct ClientKey: Hashable, Sendable {
  /// A unique number for the client; 0 only for `ourselves`.
  public let value: UInt64

  /// The daemon itself.
  @inlinable public static var ourselves: ClientKey { @_noAllocation get { ClientKey(value: 0) } }

  /// - Parameter value: the `value` of another key.
  @_noAllocation @inlinable
  public init(value: UInt64) { self.value = value }

  /// The client at an IPv4 or IPv6 socket address.
  @_noAllocation
  public init(_ address: UnsafePointer<sockaddr_storage>) {
    let number = IPNumber(address).unmapped
    // The last octet of the /64 is not part of the /56, and distinguishes the families instead.
    self.init(value: number.isIPv6 ? number.high & ~0xFF | 6 : number.high >> 24 | 4)
  }

  /// Its network, for logs: the /24 of an IPv4 address, the /56 of an IPv6 one. Nil for `ourselves`.
  public var network: IPPrefix? {
    let (family, octets) = (value & 0xFF, withUnsafeBytes(of: value.bigEndian) { Array($0) })
    switch family {
    case 4: return IPAddress(octets: Array(octets[3..<7])).flatMap { IPPrefix($0, length: 24) }
    case 6: return IPAddress(octets: octets + [UInt8](repeating: 0, count: 8)).flatMap { IPPrefix($0, length: 56) }
    default: return nil
    }
  }
}

/// A registered domain by the definition of `PublicSuffixes`, whose names have one owner.
public struct DomainKey: Hashable, Sendable {
  /// A hash with a random seed.
  public let value: UInt64

  /// No domain, for questions of the daemon itself.
  public static let none = DomainKey(value: 0)

  /// - Parameter value: the `value` of another key.
  public init(value: UInt64) { self.value = value }

  /// - Parameter name: must be in lower case.
  public init(of name: DomainName) {
    self = name.octets.withUnsafeBufferPointer { octets in
      // SipHash with the random seed of the process.
      var hasher = Hasher()
      hasher.combine(
        bytes: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(octets)[PublicSuffixes.domainStart(octets)...]))
      return DomainKey(value: UInt64(bitPattern: Int64(hasher.finalize())))
    }
  }
}
