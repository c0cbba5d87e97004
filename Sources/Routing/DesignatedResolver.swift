// DesignatedResolver.swift -- how clients learn that this resolver also serves them encrypted (DDR, RFC 9462).

import DNSWire

/// The encrypted listeners that clients may learn of, by asking for `_dns.resolver.arpa`.
public struct DesignatedResolver: Hashable, Sendable {
  /// The name of the server, which its certificate has.
  public let name: DomainName
  /// The addresses at which clients reach it; none if they are not known.
  public let addresses: [IPAddress]
  /// The answer to `_dns.resolver.arpa SVCB`.
  let records: [LocalRecord]

  /// Seconds.
  static let ttl: UInt32 = 300
  /// The name that clients ask for (RFC 9462 section 4).
  static let queryName = DomainName(text: "_dns.resolver.arpa")!
  /// The most octets of the answer to a client without EDNS that has the additional section; a longer one has the hints
  /// alone, which say the same.
  private static let mostOctets = 512 - 11

  /// - Parameters:
  ///   - https: the ports of DNS over HTTPS, by preference.
  ///   - path: that of DNS over HTTPS: unreserved characters and slashes, the first one a slash.
  ///   - tls: the ports of DNS over TLS, by preference.
  ///   - addresses: those of `published`, else those of the listeners. Each is named once; wildcards are left out, and so are
  ///     link-local addresses, which mean nothing without an interface.
  /// - Returns: nil without a port.
  public init?(name: DomainName, https: [UInt16], path: String, tls: [UInt16], addresses: [IPAddress]) {
    self.name = name.lowercased
    var reachable: [IPAddress] = []
    for address in addresses where !address.octets.allSatisfy({ $0 == 0 }) && !address.isLinkLocal {
      if !reachable.contains(address) { reachable.append(address) }
    }
    self.addresses = reachable
    func hint(_ key: String, _ addresses: [IPAddress]) -> String {
      addresses.isEmpty ? "" : " \(key)=\(addresses.map(\.description).joined(separator: ","))"
    }
    let hints = hint("ipv4hint", reachable.filter { !$0.isIPv6 }) + hint("ipv6hint", reachable.filter(\.isIPv6))
    // RFC 9461 sections 4 and 5.
    let texts =
      https.map { "1 \(name.text) alpn=h2 port=\($0)\(hints) dohpath=\(path){?dns}" }
      + tls.map { "2 \(name.text) alpn=dot port=\($0)\(hints)" }
    records = texts.compactMap { RDATA.parse(text: $0, type: .svcb) }.map {
      LocalRecord(type: .svcb, ttl: DesignatedResolver.ttl, rdata: $0)
    }
    guard !records.isEmpty else { return nil }
  }

  /// The addresses as records of the server's name, for the additional section (RFC 9462 section 4); none where the answer
  /// would be too long for clients without EDNS.
  var additionals: [ResourceRecord] {
    let records = addresses.map {
      ResourceRecord(owner: name, type: $0.isIPv6 ? .aaaa : .a, ttl: DesignatedResolver.ttl, rdata: $0.octets)
    }
    let question = 12 + DesignatedResolver.queryName.octets.count + 4
    let octets =
      question + self.records.reduce(0) { $0 + 12 + $1.rdata.count }
      + records.reduce(0) { $0 + name.octets.count + 10 + $1.rdata.count }
    return octets <= DesignatedResolver.mostOctets ? records : []
  }
}
