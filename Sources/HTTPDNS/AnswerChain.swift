// AnswerChain.swift -- finds the way from QNAME over CNAME records to the RRset that was asked for.

import DNSWire

/// An Answer section in the order in which stub resolvers expect it, whatever order it came in.
struct AnswerChain {
  /// CNAME links that are followed; resolvers in the field stop at about as many.
  static let maximumLinks = 16

  private let question: HTTPDNSQuestion
  /// The chain, then the RRset of the asked type; with DO each RRset is followed by its signatures.
  private(set) var records: [ResourceRecord] = []
  /// Where the chain ends: the owner of the asked RRset, or the name that has none.
  private(set) var end: DomainName
  /// Whether there is an RRset of the asked type.
  private(set) var hasData = false

  /// An empty chain that begins at QNAME.
  init(question: HTTPDNSQuestion) {
    self.question = question
    end = question.name
  }

  /// Follows the chain through an Answer section.
  ///
  /// - Throws: `.unreadable(.chain)` for a loop, more than `maximumLinks` links, two different targets of one name, or
  ///   data at names that no link leads to and none at the chain's end: such a section is not an answer to QNAME,
  ///   and taking it for NODATA would be a guess.
  /// - Complexity: O(*n*) in the records for each link.
  mutating func follow(_ section: [ResourceRecord]) throws(HTTPDNSFailure) {
    records.reserveCapacity(section.count)
    for _ in 0...AnswerChain.maximumLinks {
      if appendSigned(section, question.type) {
        hasData = true
        return
      }
      guard let target = try link(of: section) else {
        guard !section.contains(where: { $0.type == question.type }) else { throw .unreadable(.chain) }
        return
      }
      appendRedirection(section)
      appendSigned(section, .cname)
      end = target
    }
    throw .unreadable(.chain)
  }

  /// The target of the CNAME record at the chain's end; nil where there is none.
  private func link(of section: [ResourceRecord]) throws(HTTPDNSFailure) -> DomainName? {
    var found: DomainName?
    for record in section where record.type == .cname && record.owner == end {
      guard let target = DomainName(octets: record.rdata) else { throw .unreadable(.name) }
      guard found == nil || found == target else { throw .unreadable(.chain) }
      found = target
    }
    return found
  }

  @discardableResult
  private mutating func appendSigned(_ section: [ResourceRecord], _ type: RecordType) -> Bool {
    // Spelling differs between copies of one CNAME record: they are duplicates, and one is enough.
    let limit = type == .cname ? 1 : Int.max
    guard appendRRset(of: section, owner: end, type: type, limit: limit, to: &records) else { return false }
    if question.dnssecOK, question.type != .rrsig {
      appendSignatures(of: section, owner: end, covering: type, to: &records)
    }
    return true
  }

  /// Appends the DNAME record from which the next CNAME record was made (RFC 6672 section 3.1): a validator needs it.
  private mutating func appendRedirection(_ section: [ResourceRecord]) {
    guard question.dnssecOK else { return }
    for record in section
    where record.type == .dname && record.owner != end && end.isAtOrBelow(record.owner)
      && !records.contains(where: { $0.type == .dname && $0.owner == record.owner })
    {
      appendRRset(of: section, owner: record.owner, type: .dname, limit: 1, to: &records)
      appendSignatures(of: section, owner: record.owner, covering: .dname, to: &records)
    }
  }
}
