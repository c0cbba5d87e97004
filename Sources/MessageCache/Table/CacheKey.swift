// CacheKey.swift -- everything that an answer depends on, as octets in the caller's buffer, with a hash.

import CHotPath
import DNSWire

/// The key of an entry: QNAME in lower case, QTYPE, DO and CD, route, network, client subnet.
///
/// QCLASS is always IN: other classes are never cached. The octets stay the caller's and must outlive the key.
public struct CacheKey {
  /// The first octet of the key, in the caller's buffer.
  public var octets: UnsafePointer<UInt8>
  /// The number of octets.
  public var length: Int
  /// A keyed hash of the octets.
  public var hash: UInt64

  /// Creates a key over existing octets.
  @_noAllocation @inlinable
  public init(octets: UnsafePointer<UInt8>, length: Int, hash: UInt64) {
    self.octets = octets
    self.length = length
    self.hash = hash
  }

  /// The octets after the name in a key without a client subnet.
  @inlinable public static var fixedLength: Int { @_noAllocation get { 9 } }
  /// The longest key: a name of 255 octets, the fixed part, and a client subnet.
  @inlinable public static var longest: Int { @_noAllocation get { 255 + 9 + 18 } }
  /// QTYPE of an entry that is valid for every type of its name: NXDOMAIN (RFC 2308 section 5).
  @inlinable public static var everyType: UInt16 { @_noAllocation get { 0 } }
}

/// The parts of a key after the name.
public struct CacheScope: Hashable, Sendable {
  /// QTYPE, or `CacheKey.everyType`.
  public var type: UInt16
  /// The DO bit.
  public var dnssecOK: Bool
  /// The CD bit.
  public var checkingDisabled: Bool
  /// The route's number.
  public var route: UInt16
  /// The number of the network.
  public var network: UInt32

  @_noAllocation @inlinable
  public init(type: UInt16, dnssecOK: Bool, checkingDisabled: Bool, route: UInt16, network: UInt32) {
    self.type = type
    self.dnssecOK = dnssecOK
    self.checkingDisabled = checkingDisabled
    self.route = route
    self.network = network
  }
}

extension CacheScope {
  /// The name and the scope of a key's octets; nil if the key has a client subnet.
  public static func parts(of key: [UInt8]) -> (name: DomainName, scope: CacheScope)? {
    var end = 0
    while end < key.count, key[end] != 0 { end += Int(key[end]) + 1 }
    guard end + 1 + CacheKey.fixedLength == key.count else { return nil }
    let rest = key[(end + 1)...].map { UInt32($0) }
    let scope = CacheScope(
      type: UInt16(rest[0] << 8 | rest[1]), dnssecOK: rest[2] & 1 != 0, checkingDisabled: rest[2] & 2 != 0,
      route: UInt16(rest[3] << 8 | rest[4]), network: rest[5] << 24 | rest[6] << 16 | rest[7] << 8 | rest[8])
    return (DomainName(unchecked: Array(key[...end])), scope)
  }
}

extension MessageCache {
  /// Writes the scope after the name in `buffer` and hashes the key. Does not allocate.
  ///
  /// - Parameters:
  ///   - buffer: begins with QNAME in lower case, of `nameLength` octets; must have room for `CacheKey.longest`.
  ///   - subnet: the client subnet that the answer depends on; family 0 for none.
  @_noAllocation
  public func key(
    in buffer: UnsafeMutablePointer<UInt8>, nameLength: Int, _ scope: CacheScope,
    subnet: QueryClientSubnet = QueryClientSubnet()
  ) -> CacheKey {
    var end = buffer + nameLength
    end[0] = UInt8(truncatingIfNeeded: scope.type >> 8)
    end[1] = UInt8(truncatingIfNeeded: scope.type)
    end[2] = (scope.dnssecOK ? 1 : 0) | (scope.checkingDisabled ? 2 : 0)
    end[3] = UInt8(truncatingIfNeeded: scope.route >> 8)
    end[4] = UInt8(truncatingIfNeeded: scope.route)
    end[5] = UInt8(truncatingIfNeeded: scope.network >> 24)
    end[6] = UInt8(truncatingIfNeeded: scope.network >> 16)
    end[7] = UInt8(truncatingIfNeeded: scope.network >> 8)
    end[8] = UInt8(truncatingIfNeeded: scope.network)
    end += CacheKey.fixedLength
    if subnet.family != 0 {
      end[0] = UInt8(truncatingIfNeeded: subnet.family)
      end[1] = subnet.sourceLength
      store(subnet.high, end + 2)
      store(subnet.low, end + 10)
      end += 18
    }
    let length = end - buffer
    return CacheKey(octets: UnsafePointer(buffer), length: length, hash: hash(buffer, length))
  }

  /// A multiply-and-fold hash with a random seed, so that clients cannot choose names that collide.
  @_noAllocation
  func hash(_ octets: UnsafePointer<UInt8>, _ length: Int) -> UInt64 {
    let raw = UnsafeRawPointer(octets)
    var state = seed ^ UInt64(truncatingIfNeeded: length)
    var offset = 0
    while offset &+ 8 <= length {
      state = fold(state ^ raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset &+= 8
    }
    var rest: UInt64 = 0
    while offset < length {
      rest = rest << 8 | UInt64(octets[offset])
      offset &+= 1
    }
    return fold(fold(state ^ rest) ^ seed)
  }

  @_noAllocation @inline(__always)
  private func fold(_ value: UInt64) -> UInt64 {
    let product = value.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
    return product.high ^ product.low
  }

  @_noAllocation @inline(__always)
  private func store(_ value: UInt64, _ output: UnsafeMutablePointer<UInt8>) {
    UnsafeMutableRawPointer(output).storeBytes(of: value.bigEndian, as: UInt64.self)
  }
}
