// RebindFilter.swift -- refuses answers that point public names at private addresses.
//
// A web page whose own name resolves to 192.168.1.1 can reach into its visitor's network (DNS rebinding). The filter is
// used on the cold path only, for answers of providers; LocalDNS, rules and the hosts file are not filtered.

import DNSWire

/// The check of `[names] rebind_protection`.
public struct RebindFilter: Sendable {
  private let allowed: [NamePattern]
  private let prefixes: [IPPrefix]

  /// Names that match `allowed` may have private addresses; `prefixes` count as private too.
  public init(allowed: [NamePattern], prefixes: [IPPrefix] = []) {
    self.allowed = allowed
    self.prefixes = prefixes
  }

  /// Whether an answer for `name` leads into a private network: by an address in an A or AAAA record or in the hints of an
  /// SVCB or HTTPS record, which browsers use too; or by an alias or service target in a local zone, whose addresses the
  /// client would query next.
  ///
  /// - Complexity: O(octets of the records)
  public func refuses(_ records: [ResourceRecord], for name: DomainName) -> Bool {
    guard records.contains(where: { leadsInside($0, from: name) }) else { return false }
    return !allowed.contains { $0.matches(name) }
  }

  /// Whether the public Internet does not route to an address: this network, private, shared (RFC 6598), loopback,
  /// link-local (including the metadata services of clouds), multicast, reserved, and IPv6 addresses that embed one of
  /// these. False unless there are 4 or 16 octets.
  public static func isPrivate(_ address: some RandomAccessCollection<UInt8>) -> Bool {
    let octets = Array(address)
    if octets.count == 4 { return isPrivateIPv4(octets[...]) }
    guard octets.count == 16 else { return false }
    if isPrivateIPv6(octets) { return true }
    return embedded(in: octets).contains { isPrivateIPv4($0[...]) }
  }

  private static func isPrivateIPv6(_ octets: [UInt8]) -> Bool {
    if octets[0] & 0xFE == 0xFC { return true }  // fc00::/7, unique local
    if octets[0] == 0xFF { return true }  // ff00::/8, multicast
    if octets[0] == 0xFE, octets[1] & 0x80 == 0x80 { return true }  // fe80::/10, and fec0::/10, which was site-local
    if octets.starts(with: [0, 0x64, 0xFF, 0x9B, 0, 1]) { return true }  // 64:ff9b:1::/48, RFC 8215
    guard octets[..<8].allSatisfy({ $0 == 0 }) else { return false }
    // ::ffff:0:0:0/96, RFC 7915; ::/96, which includes loopback and the unspecified address; ::ffff:0:0/96. None belongs
    // into the DNS.
    switch (octets[8], octets[9], octets[10], octets[11]) {
    case (0xFF, 0xFF, 0, 0), (0, 0, 0, 0), (0, 0, 0xFF, 0xFF): return true
    default: return false
    }
  }

  /// The IPv4 addresses that packets to an IPv6 address may reach.
  public static func embedded(in octets: [UInt8]) -> [[UInt8]] {
    let last = Array(octets[12...])
    var found: [[UInt8]] = []
    if octets.starts(with: [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]) { found.append(last) }  // RFC 6052
    if octets.starts(with: [0x20, 0x02]) { found.append(Array(octets[2..<6])) }  // 6to4, RFC 3056
    if octets.starts(with: [0x20, 0x01, 0, 0]) {  // Teredo, RFC 4380: the server, and the client inverted
      found += [Array(octets[4..<8]), last.map { ~$0 }]
    }
    if octets[8] & 0xFC == 0, octets[9] == 0, octets[10] == 0x5E, octets[11] == 0xFE { found.append(last) }  // ISATAP
    return found
  }

  private static func isPrivateIPv4(_ octets: ArraySlice<UInt8>) -> Bool {
    let (second, third) = (octets[octets.startIndex + 1], octets[octets.startIndex + 2])
    return switch octets[octets.startIndex] {
    case 0, 10, 127: true
    case 100: second & 0xC0 == 64
    case 169: second == 254
    case 172: second & 0xF0 == 16
    case 192: second == 168 || second == 0 && third == 0  // 192.0.0.0/24, RFC 6890
    case 224...: true  // multicast; reserved, broadcast among it
    default: false
    }
  }

  private func isInside(_ address: some RandomAccessCollection<UInt8>) -> Bool {
    if RebindFilter.isPrivate(address) { return true }
    guard !prefixes.isEmpty, let address = IPAddress(octets: Array(address)) else { return false }
    return prefixes.contains { $0.contains(address) }
  }

  private func leadsInside(_ record: ResourceRecord, from name: DomainName) -> Bool {
    switch record.type {
    case .a, .aaaa: isInside(record.rdata)
    case .cname, .dname: DomainName(octets: record.rdata).map { isLocal($0, from: name) } ?? false
    case .svcb, .https: serviceLeadsInside(record.rdata, from: name)
    default: false
    }
  }

  /// Whether a target is in a local zone; names in local zones may point to others there.
  private func isLocal(_ target: DomainName, from name: DomainName) -> Bool {
    LocalZones.contains(target) && !LocalZones.contains(name)
  }

  private func serviceLeadsInside(_ rdata: [UInt8], from name: DomainName) -> Bool {
    let hints = ServiceHints(rdata)
    return hints.target.map { isLocal($0, from: name) } ?? false || hints.addresses.contains { isInside($0) }
  }
}
