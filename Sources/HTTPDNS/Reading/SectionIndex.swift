// SectionIndex.swift -- finds the RRsets of a section in bounded time, even in a hostile response.

import DNSWire

/// The records of a section by owner and type. A hostile response can have 5,000 records and a chain that needs many
/// RRsets: to scan all records for each RRset would delay every other client.
struct SectionIndex {
  private struct Key: Hashable {
    let owner: DomainName
    let type: RecordType
    /// Whether the key refers to the signatures that cover the type.
    var isSignature = false
  }

  /// Up to this many records are scanned, because hashing their names costs more.
  private static let small = 12

  let records: [ResourceRecord]
  /// The indices of the records; empty if there are few records.
  private var places: [Key: [Int]] = [:]
  /// The number of records visited, for tests.
  private(set) var steps = 0

  init(_ records: [ResourceRecord]) {
    self.records = records
    guard records.count > SectionIndex.small else { return }
    places.reserveCapacity(records.count)
    for (place, record) in records.enumerated() {
      places[Key(owner: record.owner, type: record.type), default: []].append(place)
      if record.type == .rrsig, let covered = record.coveredType {
        places[Key(owner: record.owner, type: covered, isSignature: true), default: []].append(place)
      }
    }
    steps = records.count
  }

  /// The indices of an RRset's records, in order.
  mutating func rrset(_ owner: DomainName, _ type: RecordType) -> [Int] {
    find(Key(owner: owner, type: type)) { $0.type == type && $0.owner == owner }
  }

  /// The indices of the RRSIG records that cover an RRset (RFC 4034 section 3.1.1).
  mutating func signatures(_ owner: DomainName, covering type: RecordType) -> [Int] {
    find(Key(owner: owner, type: type, isSignature: true)) {
      $0.type == .rrsig && $0.coveredType == type && $0.owner == owner
    }
  }

  private mutating func find(_ key: Key, _ isMeant: (ResourceRecord) -> Bool) -> [Int] {
    guard records.count > SectionIndex.small else {
      steps += records.count
      return records.indices.filter { isMeant(records[$0]) }
    }
    let found = places[key] ?? []
    steps += found.count + 1
    return found
  }

  /// Appends an RRset without duplicates (RFC 2181 section 5), all records with the lowest TTL (section 5.2) and with
  /// the owner name as given. Returns whether there is such an RRset.
  @discardableResult
  mutating func append(
    _ owner: DomainName, _ type: RecordType, limit: Int = .max, to output: inout [ResourceRecord]
  ) -> Bool {
    append(rrset(owner, type), owner, limit: limit, to: &output)
  }

  mutating func appendSignatures(_ owner: DomainName, covering type: RecordType, to output: inout [ResourceRecord]) {
    append(signatures(owner, covering: type), owner, to: &output)
  }

  @discardableResult
  private func append(
    _ places: [Int], _ owner: DomainName, limit: Int = .max, to output: inout [ResourceRecord]
  ) -> Bool {
    let start = output.count
    var lowest = LowestTTL()
    var seen: Set<[UInt8]> = []
    for place in places {
      let record = records[place]
      lowest.note(record)
      guard output.count - start < limit else { continue }
      if output.count - start < SectionIndex.fewRecords {
        guard !output[start...].contains(where: { $0.rdata == record.rdata }) else { continue }
      } else {
        if seen.isEmpty { seen = Set(output[start...].map(\.rdata)) }
        guard seen.insert(record.rdata).inserted else { continue }
      }
      output.append(ResourceRecord(owner: owner, type: record.type, ttl: record.ttl, rdata: record.rdata))
    }
    for index in start..<output.count { output[index].ttl = lowest.ttl(of: output[index]) }
    return output.count > start
  }

  /// Up to this many records of an RRset are compared with each other, because hashing them costs more.
  private static let fewRecords = 8
}

/// The lowest TTL of an RRset. RRSIG records form one set per covered type, and have the TTL of the records that they
/// sign (RFC 4034 section 3).
private struct LowestTTL {
  private var lowest = UInt32.max
  private var ofSignatures: [RecordType: UInt32] = [:]

  mutating func note(_ record: ResourceRecord) {
    if record.type == .rrsig, let covered = record.coveredType {
      ofSignatures[covered] = min(ofSignatures[covered] ?? .max, record.ttl)
    } else {
      lowest = min(lowest, record.ttl)
    }
  }

  func ttl(of record: ResourceRecord) -> UInt32 {
    guard record.type == .rrsig, let covered = record.coveredType else { return lowest }
    return ofSignatures[covered] ?? lowest
  }
}

extension ResourceRecord {
  /// The first field of RRSIG (RFC 4034 section 3.1.1); nil if RDATA is too short.
  var coveredType: RecordType? { rdata.count >= 2 ? RecordType(UInt16(rdata[0]) << 8 | UInt16(rdata[1])) : nil }
}
