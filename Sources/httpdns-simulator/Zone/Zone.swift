// Zone.swift -- the names that the simulated service knows, and what it says about each.

import DNSWire

/// A record with its RDATA in both forms: dialects of JSON show the zone file's text, RFC 8484 the octets.
struct ZoneRecord: Sendable {
  var owner: DomainName
  var type: RecordType
  var ttl: UInt32
  /// Presentation text of the RDATA, every name in it absolute.
  var text: String
  /// The RDATA in wire form, names uncompressed.
  var rdata: [UInt8]
}

/// What exists at one name.
struct ZoneNode: Sendable {
  /// A response code that stands in for records: names that fail on purpose.
  var code = ResponseCode.noError
  var records: [ZoneRecord] = []

  func records(of type: RecordType) -> [ZoneRecord] {
    type == .any ? records : records.filter { $0.type == type }
  }
}

/// What the service says to a question.
struct ZoneAnswer: Sendable {
  var question: Question
  var code = ResponseCode.noError
  /// An Extended DNS Error (RFC 8914), where the dialect has a place for it.
  var extendedError: UInt16?
  /// The CNAME chain, then the records of the type that was asked.
  var records: [ZoneRecord] = []
  /// The SOA record of a negative response, its TTL cut to the negative one (RFC 2308 section 5).
  var authority: [ZoneRecord] = []
}

/// Names and their records; an immutable value.
struct Zone: Sendable {
  /// Links of a CNAME chain that are followed before the service gives up.
  static let chainLimit = 16

  /// The TTL of synthetic names, and of records that give none.
  var defaultTTL: UInt32 { synthetic.defaultTTL }

  private var nodes: [DomainName: ZoneNode] = [:]
  private let synthetic: SyntheticNames
  private let rootSOA: ZoneRecord

  /// An empty zone, which still knows the synthetic names; `defaultTTL` is theirs.
  init(defaultTTL: UInt32 = 300) {
    synthetic = SyntheticNames(defaultTTL: defaultTTL)
    rootSOA = synthetic.soa(of: .root)
  }

  /// Adds a record; every name between it and the root exists from now on, if only as an empty one (RFC 4592).
  mutating func add(_ record: ZoneRecord) {
    nodes[record.owner, default: ZoneNode()].records.append(record)
    var name = record.owner
    while let parent = name.parent, nodes[parent] == nil {
      nodes[parent] = ZoneNode()
      name = parent
    }
  }

  /// The names that stand in the zone and in a host's name, in order; no synthetic ones and no wildcards.
  var plainNames: [DomainName] {
    nodes.keys.filter(\.isPlain).sorted { $0.lowercased.text < $1.lowercased.text }
  }

  /// What a resolver would answer: chains are followed, wildcards apply, what is not there is NXDOMAIN or NODATA.
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

  /// The record with the TTL of a negative response: the smaller of its own and its MINIMUM field.
  private static func negative(_ soa: ZoneRecord) -> ZoneRecord {
    var soa = soa
    let minimum = soa.rdata.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    soa.ttl = min(soa.ttl, minimum)
    return soa
  }
}
