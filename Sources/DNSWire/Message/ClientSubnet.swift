// ClientSubnet.swift -- the EDNS Client Subnet option (RFC 7871 section 6).

/// The client addresses that a query is for, or that a response is valid for.
public struct ClientSubnet: Hashable, Sendable {
  /// ADDRESS and SOURCE PREFIX-LENGTH.
  public var prefix: IPPrefix
  /// SCOPE PREFIX-LENGTH in bits; 0 in a query.
  public var scope: UInt8

  /// A query has scope 0.
  public init(_ prefix: IPPrefix, scope: UInt8 = 0) {
    self.prefix = prefix
    self.scope = scope
  }

  /// A subnet from an option's data; nil for a family other than IPv4 and IPv6, a prefix longer than the family's
  /// addresses, a wrong number of octets for the prefix, or a nonzero bit after it.
  public init?(octets: [UInt8]) {
    guard octets.count >= 4, octets[0] == 0, octets[1] == 1 || octets[1] == 2 else { return nil }
    let addressCount = octets[1] == 1 ? 4 : 16
    let length = Int(octets[2])
    let address = octets[4...]
    guard octets.count == 4 + (length + 7) / 8, address.count <= addressCount, Int(octets[3]) <= addressCount * 8,
      let whole = IPAddress(octets: address + [UInt8](repeating: 0, count: addressCount - address.count)),
      let prefix = IPPrefix(whole, length: length), prefix.address == whole
    else { return nil }
    self.init(prefix, scope: octets[3])
  }

  public var option: EDNS.Option {
    let address = prefix.address
    return EDNS.Option(
      code: .clientSubnet,
      data: [0, address.isIPv6 ? 2 : 1, UInt8(prefix.length), scope] + address.octets[..<((prefix.length + 7) / 8)])
  }
}
