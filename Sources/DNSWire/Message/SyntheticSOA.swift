// SyntheticSOA.swift -- the SOA record of negative answers that have none.

/// The SOA record for negative answers without one from upstream: caching stub resolvers need it (RFC 2308 section 5).
public enum SyntheticSOA {
  /// An SOA record with that owner name; its MINIMUM equals its TTL, in seconds.
  public static func record(_ owner: DomainName, ttl: UInt32) -> ResourceRecord {
    var rdata = DomainName(text: "localhost.")!.octets + DomainName(text: "nobody.invalid.")!.octets
    for number in [1, 3600, 1200, 604_800, ttl] as [UInt32] {
      withUnsafeBytes(of: number.bigEndian) { rdata.append(contentsOf: $0) }
    }
    return ResourceRecord(owner: owner, type: .soa, ttl: ttl, rdata: rdata)
  }
}
