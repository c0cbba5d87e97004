// Zone.swift -- the names of the simulated service and their records.

import DNSWire

/// A record with its RDATA in both forms: JSON dialects send the zone file's text, RFC 8484 the octets.
struct ZoneRecord: Sendable {
  var owner: DomainName
  var type: RecordType
  var ttl: UInt32
  /// Presentation text of the RDATA, in which every name is absolute.
  var text: String
  /// The RDATA in wire format, names uncompressed.
  var rdata: [UInt8]
}

/// The records at one name.
struct ZoneNode: Sendable {
  /// A response code instead of records, for names that fail deliberately.
  var code = ResponseCode.noError
  var records: [ZoneRecord] = []

  func records(of type: RecordType) -> [ZoneRecord] { type == .any ? records : records.filter { $0.type == type } }
}

/// The service's answer to a question.
struct ZoneAnswer: Sendable {
  var question: Question
  var code = ResponseCode.noError
  /// An Extended DNS Error (RFC 8914), for dialects that can express it.
  var extendedError: UInt16?
  /// The CNAME chain, then the records of QTYPE.
  var records: [ZoneRecord] = []
  /// The SOA record of a negative response, its TTL limited to MINIMUM (RFC 2308 section 5).
  var authority: [ZoneRecord] = []
}

/// Names and their records.
struct Zone: Sendable {
  /// Maximum links of a CNAME chain; a longer one is SERVFAIL.
  static let chainLimit = 16

  /// The default TTL of synthetic names and records, in seconds.
  var defaultTTL: UInt32 { synthetic.defaultTTL }

  private var nodes: [DomainName: ZoneNode] = [:]
  private let synthetic: SyntheticNames
  private let rootSOA: ZoneRecord

  /// Creates a zone that has only the synthetic names.
  init(defaultTTL: UInt32 = 300) {
    synthetic = SyntheticNames(defaultTTL: defaultTTL)
    rootSOA = synthetic.soa(of: .root)
  }

  /// Adds a record. Every name between it and the root then exists, if necessary as an empty non-terminal (RFC 4592).
  mutating func add(_ record: ZoneRecord) {
    nodes[record.owner, default: ZoneNode()].records.append(record)
    var name = record.owner
    while let parent = name.parent, nodes[parent] == nil {
      nodes[parent] = ZoneNode()
      name = parent
    }
  }

  /// The names of letters, digits, hyphens and underscores, sorted; no synthetic names and no wildcards.
  var plainNames: [DomainName] { nodes.keys.filter(\.isPlain).sorted { $0.lowercased.text < $1.lowercased.text } }

  /// Returns a resolver's answer: it follows chains, applies wildcards, and returns NXDOMAIN or NODATA for missing
  /// data.
  func answer(_ question: Question) -> ZoneAnswer {
    var answer = ZoneAnswer(question: question)
    var owner = question.name
    for _ in 0...Zone.chainLimit {
      guard let node = node(at: owner) else {
        answer.code = .nxDomain
        answer.authority = [soa(above: owner)]
        return answer
      }
      guard node.code == .noError else {
        answer.code = node.code
        return answer
      }
      let found = node.records(of: question.type)
      let alias = found.isEmpty ? node.records.first { $0.type == .cname } : nil
      for record in alias.map({ [$0] }) ?? found {
        answer.records.append(record)
        answer.records[answer.records.count - 1].owner = owner
      }
      guard let alias else {
        if found.isEmpty { answer.authority = [soa(above: owner)] }
        return answer
      }
      owner = DomainName(octets: alias.rdata)!  // the parser has checked it
    }
    return ZoneAnswer(question: question, code: .servFail)
  }

  private func node(at name: DomainName) -> ZoneNode? {
    if let node = nodes[name] { return node }
    if let node = synthetic.node(at: name) { return node }
    var ancestor = name.parent
    while let candidate = ancestor {
      if nodes[candidate] != nil { return nodes[Zone.wildcard(below: candidate)] }
      ancestor = candidate.parent
    }
    return nodes[Zone.wildcard(below: .root)]
  }

  private func soa(above name: DomainName) -> ZoneRecord {
    var candidate: DomainName? = name
    while let owner = candidate {
      if let soa = nodes[owner]?.records.first(where: { $0.type == .soa }) { return Zone.negative(soa) }
      if synthetic.isApex(owner) { return Zone.negative(synthetic.soa(of: owner)) }
      candidate = owner.parent
    }
    return Zone.negative(rootSOA)
  }

  private static func wildcard(below name: DomainName) -> DomainName {
    DomainName(unchecked: [1, UInt8(ascii: "*")] + name.octets)
  }

  /// The SOA record with the TTL of a negative response: the lower of its own TTL and MINIMUM.
  private static func negative(_ soa: ZoneRecord) -> ZoneRecord {
    var soa = soa
    let minimum = soa.rdata.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    soa.ttl = min(soa.ttl, minimum)
    return soa
  }
}
