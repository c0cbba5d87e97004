// NAT64Prefix.swift -- IPv6 addresses that stand for IPv4 addresses (RFC 6052).

/// The prefix under which a network's NAT64 reaches IPv4 addresses.
public struct NAT64Prefix: Hashable, Sendable {
  /// The lengths that RFC 6052 section 2.2 allows.
  public static let lengths = [32, 40, 48, 56, 64, 96]

  /// An IPv6 prefix of one of these lengths.
  public let prefix: IPPrefix

  /// A prefix; nil if it is not one of IPv6, has another length, or has a bit set among bits 64 to 71.
  public init?(_ prefix: IPPrefix) {
    guard prefix.address.isIPv6, NAT64Prefix.lengths.contains(prefix.length), prefix.address.octets[8] == 0 else {
      return nil
    }
    self.prefix = prefix
  }

  /// The prefix of an AAAA record of `ipv4only.arpa`, which has the IPv4 address 192.0.0.170 or 192.0.0.171 in it (RFC 7050
  /// section 3); nil if none has that, or several prefixes might.
  public init?(of address: IPAddress) {
    guard address.isIPv6 else { return nil }
    let found = NAT64Prefix.lengths.compactMap { length in
      IPPrefix(address, length: length).flatMap { NAT64Prefix($0) }
    }.filter { prefix in
      guard let inside = prefix.ipv4Address(in: address)?.octets else { return false }
      return inside == [192, 0, 0, 170] || inside == [192, 0, 0, 171]
    }
    guard found.count == 1 else { return nil }
    self = found[0]
  }

  /// The IPv6 address that stands for an IPv4 address.
  public func address(of ipv4: IPAddress) -> IPAddress {
    var octets = prefix.address.octets
    for (place, octet) in zip(places, ipv4.octets) { octets[place] = octet }
    return IPAddress(octets: octets)!
  }

  /// The IPv4 address that an address stands for; nil outside the prefix.
  public func ipv4Address(in address: IPAddress) -> IPAddress? {
    guard prefix.contains(address) else { return nil }
    return IPAddress(octets: places.map { address.octets[$0] })
  }

  /// Where the octets of the IPv4 address stand: behind the prefix, without octet 8.
  private var places: [Int] {
    let start = prefix.length / 8
    return (start..<start + 5).filter { $0 != 8 }.prefix(4).map(\.self)
  }
}

extension NAT64Prefix: CustomStringConvertible {
  /// `address/length`.
  public var description: String { prefix.description }
}
