// ShareKeys.swift -- whose share something is: a client's, a domain's.

import DNSWire
import Glibc
import PublicSuffixes

/// A client: an IPv4 address, or the /56 of an IPv6 one. An IPv4-mapped address is the IPv4 one.
public struct ClientKey: Hashable, Sendable {
  /// The client as one number, which no other client has; never 0.
  public let value: UInt64

  /// Nobody outside: the program itself.
  @inlinable public static var ourselves: ClientKey { @_noAllocation get { ClientKey(value: 0) } }

  /// - Parameter value: one that another key has.
  @_noAllocation @inlinable
  public init(value: UInt64) { self.value = value }

  /// The client at a socket address of either family.
  @_noAllocation
  public init(_ address: UnsafePointer<sockaddr_storage>) {
    let raw = UnsafeRawPointer(address)
    guard raw.load(as: sa_family_t.self) == 10 else {
      self.init(ipv4: UInt32(bigEndian: raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
      return
    }
    let high = UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    let low = UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
    if high == 0, low >> 32 == 0xFFFF {
      self.init(ipv4: UInt32(truncatingIfNeeded: low))
    } else {
      // The last octet of the /64 does not count, and tells the families apart instead.
      self.init(value: high & ~0xFF | 6)
    }
  }

  @_noAllocation
  private init(ipv4: UInt32) { self.init(value: UInt64(ipv4) << 8 | 4) }
}

/// A domain, as `PublicSuffixes` has it: what one owner has of the names.
public struct DomainKey: Hashable, Sendable {
  /// A hash of it with a seed of the run.
  public let value: UInt64

  /// No domain: what the program asks for itself.
  public static let none = DomainKey(value: 0)

  /// - Parameter value: one that another key has.
  public init(value: UInt64) { self.value = value }

  /// The domain of a name.
  ///
  /// - Parameter name: in lower case.
  public init(of name: DomainName) {
    self = name.octets.withUnsafeBufferPointer { octets in
      // SipHash, with the process's seed.
      var hasher = Hasher()
      hasher.combine(
        bytes: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(octets)[PublicSuffixes.domainStart(octets)...]))
      return DomainKey(value: UInt64(bitPattern: Int64(hasher.finalize())))
    }
  }
}
