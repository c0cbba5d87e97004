// ProviderReply.swift -- checks the reply of every dialect and turns it into an answer.

import DNSWire

/// The contents of a body as a dialect read them, in their original order.
struct ProviderReply {
  /// RCODE with its extension.
  var responseCode: ResponseCode
  /// AD.
  var isAuthenticated = false
  /// What was wrong with records that were left out.
  var leftOut: HTTPDNSFailure?
  /// The relevant records of the Answer section.
  var answers: [ResourceRecord] = []
  /// The relevant records of the Authority section.
  var authorities: [ResourceRecord] = []
  /// The scope of the subnet that was sent.
  var scopePrefixLength: Int?
  var extendedError: ExtendedError?

  /// Returns the answer: the CNAME chain in order from QNAME, without unrelated records, with one TTL per RRset. The
  /// Authority section has only the records that a negative answer or a proof needs.
  ///
  /// An NXDOMAIN reply with data of QTYPE becomes NOERROR, as in other resolvers. If records were left out, the answer
  /// is not marked as authentic, and it is never a negative answer.
  ///
  /// - Throws: `.unreadable` for a broken chain, for a referral, and `leftOut` if nothing else follows from the question.
  /// - Complexity: O(*n*) in the records.
  func answer(to question: HTTPDNSQuestion) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    var steps = 0
    return try answer(to: question, counting: &steps)
  }

  /// Also counts the records that were visited, for tests.
  func answer(to question: HTTPDNSQuestion, counting steps: inout Int) throws(HTTPDNSFailure) -> HTTPDNSAnswer {
    var answer = HTTPDNSAnswer(
      responseCode: responseCode, scopePrefixLength: scopePrefixLength, extendedError: extendedError)
    guard responseCode == .noError || responseCode == .nxDomain else { return answer }
    let chain = try AnswerChain(answers, to: question)
    steps += chain.section.steps
    if let leftOut, !chain.hasData { throw leftOut }
    if chain.hasData { answer.responseCode = .noError }
    answer.isAuthenticated = isAuthenticated && leftOut == nil
    answer.isNegative = !chain.hasData
    guard !(answer.isNegative && responseCode == .noError && refers(chain.end)) else { throw .unreadable(.referral) }
    answer.answers = chain.records
    answer.authorities = passedAuthorities(question, end: chain.end, isNegative: answer.isNegative, &steps)
    return answer
  }

  /// Whether the reply is a referral: NS records at or above the name, and no SOA record, which a negative answer would
  /// have (RFC 2308 section 2.2).
  private func refers(_ name: DomainName) -> Bool {
    authorities.contains { $0.type == .ns && name.isAtOrBelow($0.owner) } && !authorities.contains { $0.type == .soa }
  }

  /// Maximum RRsets of proofs in an answer. A negative answer needs at most four (RFC 5155 section 7.2), and each link
  /// from a wildcard needs one; a section of 64 KiB has room for thousands.
  static let mostProofs = 8

  private func passedAuthorities(
    _ question: HTTPDNSQuestion, end: DomainName, isNegative: Bool, _ steps: inout Int
  ) -> [ResourceRecord] {
    guard !authorities.isEmpty, isNegative || question.dnssecOK else { return [] }
    var passed: [ResourceRecord] = []
    var section = SectionIndex(authorities)
    // The SOA record of a zone that does not contain the name says nothing about the name (RFC 2308 section 5).
    if isNegative, let soa = authorities.first(where: { $0.type == .soa && end.isAtOrBelow($0.owner) }) {
      section.append(soa.owner, .soa, limit: 1, to: &passed)
      if question.dnssecOK { section.appendSignatures(soa.owner, covering: .soa, to: &passed) }
    }
    if question.dnssecOK { appendProofs(&section, to: &passed) }
    steps += section.steps
    return passed
  }

  private func appendProofs(_ section: inout SectionIndex, to passed: inout [ResourceRecord]) {
    var seen: Set<Question> = []
    for proof in authorities where proof.type.isDenialOfExistence {
      guard seen.insert(Question(name: proof.owner, type: proof.type)).inserted else { continue }
      section.append(proof.owner, proof.type, to: &passed)
      section.appendSignatures(proof.owner, covering: proof.type, to: &passed)
      guard seen.count < ProviderReply.mostProofs else { return }
    }
  }
}

extension RecordType {
  /// NSEC3 (RFC 5155).
  static let nsec3 = RecordType(50)

  /// Whether the type is NSEC or NSEC3, the proofs of nonexistence.
  var isDenialOfExistence: Bool { self == .nsec || self == .nsec3 }
}
