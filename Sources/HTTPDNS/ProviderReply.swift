// ProviderReply.swift -- the one place where every dialect's reply is checked and becomes an answer.

import DNSWire

/// What a dialect read from a body, in the order in which it stood there.
struct ProviderReply {
  /// RCODE with its extension.
  var responseCode: ResponseCode
  /// AD.
  var isAuthenticated = false
  /// The records of the Answer section that may matter.
  var answers: [ResourceRecord] = []
  /// The records of the Authority section that may matter.
  var authorities: [ResourceRecord] = []
  /// The scope of the subnet that was sent.
  var scopePrefixLength: Int?
  /// The first Extended DNS Error.
  var extendedError: ExtendedError?

  /// The answer: the CNAME chain in order from QNAME on, strays dropped, one TTL for each RRset, in the Authority
  /// section only what a negative answer or a proof needs.
  ///
  /// - Throws: `.unreadable` for a chain that cannot be followed, and for records that contradict the response code.
  func answer(to question: HTTPDNSQuestion) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    var answer = HTTPDNSAnswer(
      responseCode: responseCode, scopePrefixLength: scopePrefixLength, extendedError: extendedError)
    guard responseCode == .noError || responseCode == .nxDomain else { return answer }
    var chain = AnswerChain(question: question)
    try chain.follow(answers)
    guard !(chain.hasData && responseCode == .nxDomain) else { throw .unreadable(.contradiction) }
    answer.isAuthenticated = isAuthenticated
    answer.isNegative = !chain.hasData
    answer.answers = chain.records
    answer.authorities = keptAuthorities(question, end: chain.end, isNegative: answer.isNegative)
    return answer
  }

  private func keptAuthorities(
    _ question: HTTPDNSQuestion, end: DomainName, isNegative: Bool
  ) -> [ResourceRecord] {
    guard !authorities.isEmpty else { return [] }
    var kept: [ResourceRecord] = []
    // The SOA record of a zone that the name is not in says nothing about the name (RFC 2308 section 5).
    if isNegative, let soa = authorities.first(where: { $0.type == .soa && end.isAtOrBelow($0.owner) }) {
      appendRRset(of: authorities, owner: soa.owner, type: .soa, limit: 1, to: &kept)
      guard question.dnssecOK else { return kept }
      appendSignatures(of: authorities, owner: soa.owner, covering: .soa, to: &kept)
    }
    guard question.dnssecOK else { return kept }
    for proof in authorities where proof.type.isDenial && !kept.contains(where: proof.isOfSameRRset) {
      appendRRset(of: authorities, owner: proof.owner, type: proof.type, to: &kept)
      appendSignatures(of: authorities, owner: proof.owner, covering: proof.type, to: &kept)
    }
    return kept
  }
}

/// Appends the RRset that `records` hold for an owner and a type: duplicates once (RFC 2181 section 5), all with the
/// lowest TTL (section 5.2), their owner name spelled as given. Returns whether there is one.
@discardableResult
func appendRRset(
  of records: [ResourceRecord], owner: DomainName, type: RecordType, limit: Int = .max,
  to output: inout [ResourceRecord]
) -> Bool {
  let start = output.count
  var lowest = UInt32.max
  var seen: Set<[UInt8]> = []
  for record in records where record.type == type && record.owner == owner {
    lowest = min(lowest, record.ttl)
    guard output.count - start < limit else { continue }
    if output.count - start < smallRRset {
      guard !output[start...].contains(where: { $0.rdata == record.rdata }) else { continue }
    } else {
      if seen.isEmpty { seen = Set(output[start...].map(\.rdata)) }
      guard seen.insert(record.rdata).inserted else { continue }
    }
    output.append(ResourceRecord(owner: owner, type: type, ttl: record.ttl, rdata: record.rdata))
  }
  for index in start..<output.count { output[index].ttl = lowest }
  return output.count > start
}

/// Up to so many records are compared with each other; hashing them costs more.
private let smallRRset = 8

/// Appends the RRSIG records of an owner that cover a type (RFC 4034 section 3.1.1).
func appendSignatures(
  of records: [ResourceRecord], owner: DomainName, covering type: RecordType, to output: inout [ResourceRecord]
) {
  for record in records where record.type == .rrsig && record.owner == owner && record.coveredType == type {
    output.append(ResourceRecord(owner: owner, type: .rrsig, ttl: record.ttl, rdata: record.rdata))
  }
}

extension ResourceRecord {
  fileprivate var coveredType: RecordType? {
    rdata.count >= 2 ? RecordType(UInt16(rdata[0]) << 8 | UInt16(rdata[1])) : nil
  }

  fileprivate func isOfSameRRset(as other: ResourceRecord) -> Bool { type == other.type && owner == other.owner }
}

extension RecordType {
  /// NSEC3 (RFC 5155).
  static let nsec3 = RecordType(50)

  /// Whether records of this type prove that something does not exist.
  var isDenial: Bool { self == .nsec || self == .nsec3 }
}
