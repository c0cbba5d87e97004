// SyntheticNames.swift -- names with computed records, without a zone file: for tests and benchmarks.
//
//   n<N>.bench.example     A and AAAA derived from N: any number of names for a benchmark
//   ttl-<N>.example        A and AAAA with a TTL of N seconds
//   many-<N>.example       N addresses, A and AAAA
//   chain-<N>.example      N CNAME records, then A and AAAA
//   txt-<N>.example        one TXT record with N octets of text
//   nodata.example         exists without records
//   servfail.example, refused.example    fail with that response code

import DNSWire

/// The synthetic names of `example.`; a pure function of the name and the default TTL.
struct SyntheticNames: Sendable {
  /// Maximum N of `many-<N>` and `chain-<N>`.
  static let repetitionLimit = 1_000
  /// Maximum N of `txt-<N>`, which fits into a message of 65,535 octets.
  static let textLimit = 60_000

  let defaultTTL: UInt32
  private static let apex = DomainName(text: "example.")!
  private static let bench = DomainName(text: "bench.example.")!
  private static let nameServer = "ns1.example."

  func isApex(_ name: DomainName) -> Bool { name == SyntheticNames.apex }

  /// The SOA record of a zone that has none in its file.
  func soa(of owner: DomainName) -> ZoneRecord {
    var rdata = DomainName(text: SyntheticNames.nameServer)!.octets + DomainName(text: "hostmaster.example.")!.octets
    let numbers: [UInt32] = [2_024_010_101, 3_600, 600, 604_800, 60]
    for number in numbers { rdata += octets(of: number) }
    let text = "\(SyntheticNames.nameServer) hostmaster.example. \(numbers.map(String.init).joined(separator: " "))"
    return ZoneRecord(owner: owner, type: .soa, ttl: 900, text: text, rdata: rdata)
  }

  /// Returns the node of a synthetic name; nil for any other name.
  func node(at name: DomainName) -> ZoneNode? {
    guard let parent = name.parent else { return nil }
    let label = name.octets[1..<(Int(name.octets[0]) + 1)].map(asciiLowercase)
    if parent == SyntheticNames.bench, label[0] == UInt8(ascii: "n"), let number = decimal(label[1...]) {
      return ZoneNode(records: addresses(of: name, number: number, ttl: defaultTTL))
    }
    guard parent == SyntheticNames.apex else {
      return name == SyntheticNames.apex ? ZoneNode(records: [soa(of: name)]) : nil
    }
    switch String(decoding: label, as: UTF8.self) {
    case "bench", "nodata": return ZoneNode()
    case "servfail": return ZoneNode(code: .servFail)
    case "refused": return ZoneNode(code: .refused)
    default: break
    }
    guard let hyphen = label.firstIndex(of: UInt8(ascii: "-")), let number = decimal(label[(hyphen + 1)...]) else {
      return nil
    }
    return numbered(name, String(decoding: label[..<hyphen], as: UTF8.self), number)
  }

  private func numbered(_ name: DomainName, _ kind: String, _ number: UInt32) -> ZoneNode? {
    switch kind {
    case "ttl": return ZoneNode(records: addresses(of: name, number: number & 0xFF, ttl: number & 0x7FFF_FFFF))
    case "many" where number <= SyntheticNames.repetitionLimit:
      return ZoneNode(records: (0..<number).flatMap { addresses(of: name, number: $0, ttl: defaultTTL) })
    case "chain" where number <= SyntheticNames.repetitionLimit:
      guard number > 0 else { return ZoneNode(records: addresses(of: name, number: 0, ttl: defaultTTL)) }
      let target = "chain-\(number - 1).example."
      let rdata = DomainName(text: target)!.octets
      return ZoneNode(records: [ZoneRecord(owner: name, type: .cname, ttl: defaultTTL, text: target, rdata: rdata)])
    case "txt" where number <= SyntheticNames.textLimit: return ZoneNode(records: [text(of: name, length: Int(number))])
    default: return nil
    }
  }

  /// An A record in 198.18.0.0/15 and an AAAA record in 2001:2::/48, the addresses for benchmarks (RFC 2544, RFC 5180).
  private func addresses(of owner: DomainName, number: UInt32, ttl: UInt32) -> [ZoneRecord] {
    let v4 = octets(of: 0xC612_0000 | number & 0x1_FFFF)
    let v6: [UInt8] = [0x20, 0x01, 0, 2] + [UInt8](repeating: 0, count: 8) + octets(of: number)
    return [(RecordType.a, v4), (.aaaa, v6)].map { type, rdata in
      ZoneRecord(owner: owner, type: type, ttl: ttl, text: IPAddress(octets: rdata)!.description, rdata: rdata)
    }
  }

  private func text(of owner: DomainName, length: Int) -> ZoneRecord {
    let letters = (0..<length).map { UInt8(ascii: "a") + UInt8($0 % 26) }
    let parts = length == 0 ? [[]] : stride(from: 0, to: length, by: 255).map { letters[$0..<min($0 + 255, length)] }
    return ZoneRecord(
      owner: owner, type: .txt, ttl: defaultTTL,
      text: parts.map { "\"\(String(decoding: $0, as: UTF8.self))\"" }.joined(separator: " "),
      rdata: parts.flatMap { [UInt8($0.count)] + $0 })
  }
}

private func octets(of number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian, Array.init) }

/// Parses a decimal number without a sign; nil for any other text and for more than 32 bits.
private func decimal(_ digits: ArraySlice<UInt8>) -> UInt32? {
  digits.first == UInt8(ascii: "+") ? nil : UInt32(String(decoding: digits, as: UTF8.self))
}
