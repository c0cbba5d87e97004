// SectionIndex.swift -- finds a section's RRsets, however many records a stranger has put into it.

import DNSWire

/// The records of a section by owner and type. A stranger may send 5,000 of them, and a chain asks for many RRsets: a look
/// through all records for each would hold up every other client.
struct SectionIndex {
  private struct Key: Hashable {
    let owner: DomainName
    let type: RecordType
    /// Whether it stands for the signatures that cover the type.
    var isSignature = false
  }

  /// Up to so many records are looked through; hashing their names costs more.
  private static let small = 12

  let records: [ResourceRecord]
  /// The records' places; empty where they are few.
  private var places: [Key: [Int]] = [:]
  /// How many records have been looked at: the work that was done, for tests.
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

  /// The places of an RRset's records, in their order.
  mutating func rrset(_ owner: DomainName, _ type: RecordType) -> [Int] {
    find(Key(owner: owner, type: type)) { $0.type == type && $0.owner == owner }
  }

  /// The places of the RRSIG records that cover an RRset (RFC 4034 section 3.1.1).
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

  /// Appends an RRset: duplicates once (RFC 2181 section 5), all with the lowest TTL (section 5.2), their owner name
  /// spelled as given. Returns whether there is one.
  @discardableResult
  mutating func append(
    _ owner: DomainName, _ type: RecordType, limit: Int = .max, to output: inout [ResourceRecord]
  ) -> Bool {
    append(rrset(owner, type), owner, limit: limit, to: &output)
  }

  /// Appends the signatures of an RRset.
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

  /// Up to so many records of an RRset are compared with each other; hashing them costs more.
  private static let fewRecords = 8
}

/// The lowest TTL of an RRset. RRSIG records are one for each type that they cover, and have the TTL of what they sign
/// (RFC 4034 section 3).
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
  /// The type that an RRSIG record covers.
  var coveredType: RecordType? {
    rdata.count >= 2 ? RecordType(UInt16(rdata[0]) << 8 | UInt16(rdata[1])) : nil
  }
}
