// AnswerChain.swift -- finds the way from QNAME over CNAME and DNAME records to the RRset that was asked for.

import DNSWire

/// An Answer section in the order in which stub resolvers expect it, whatever order it came in.
struct AnswerChain {
  /// CNAME links that are followed; resolvers in the field stop at about as many.
  static let maximumLinks = 16

  private let question: HTTPDNSQuestion
  /// The section.
  private(set) var section: SectionIndex
  /// The owners of the section's DNAME records.
  private let redirected: Set<DomainName>
  /// Those whose records are in the chain.
  private var followed: Set<DomainName> = []
  /// The chain, then the RRset of the asked type; with DO each RRset is followed by its signatures.
  private(set) var records: [ResourceRecord] = []
  /// Where the chain ends: the owner of the asked RRset, or the name that has none.
  private(set) var end: DomainName
  /// Whether there is an RRset of the asked type.
  private(set) var hasData = false

  /// The chain through an Answer section that begins at QNAME.
  ///
  /// - Throws: `.unreadable(.chain)` for a loop, more than `maximumLinks` links, two different targets of one name, or
  ///   data at names that no link leads to and none at the chain's end: such a section is not an answer to QNAME,
  ///   and taking it for NODATA would be a guess.
  /// - Complexity: O(*n*) in the records.
  init(_ section: [ResourceRecord], to question: HTTPDNSQuestion) throws(HTTPDNSFailure) {
    self.question = question
    self.section = SectionIndex(section)
    redirected = Set(section.lazy.filter { $0.type == .dname }.map(\.owner))
    end = question.name
    records.reserveCapacity(section.count)
    try follow()
  }

  private mutating func follow() throws(HTTPDNSFailure) {
    for _ in 0...AnswerChain.maximumLinks {
      if question.type != .cname, appendSigned(question.type) {
        hasData = true
        return
      }
      let redirection = redirection()
      guard let target = try target(redirection) else {
        guard !hasStrays else { throw .unreadable(.chain) }
        return
      }
      if let redirection { append(redirection) }
      if !appendSigned(.cname), let redirection {
        records.append(ResourceRecord(owner: end, type: .cname, ttl: redirection.ttl, rdata: target.octets))
      }
      if question.type == .cname {
        hasData = true
        return
      }
      end = target
    }
    throw .unreadable(.chain)
  }

  /// Whether there is data of the asked type that no link leads to. A DNAME record that a link was made from is none.
  private var hasStrays: Bool {
    question.type == .dname
      ? redirected.count > followed.count : section.records.contains { $0.type == question.type }
  }

  /// The DNAME record that the chain's end is below, the nearest one (RFC 6672 section 2.3).
  private mutating func redirection() -> ResourceRecord? {
    guard !redirected.isEmpty else { return nil }
    var name = end
    while let parent = name.parent {
      if redirected.contains(parent) { return section.rrset(parent, .dname).first.map { section.records[$0] } }
      name = parent
    }
    return nil
  }

  /// Where the CNAME record at the chain's end leads, or the one that its DNAME record stands for (RFC 6672 section 3.1);
  /// nil where there is neither.
  private mutating func target(_ redirection: ResourceRecord?) throws(HTTPDNSFailure) -> DomainName? {
    var found: DomainName?
    for place in section.rrset(end, .cname) {
      guard let target = DomainName(octets: section.records[place].rdata) else { throw .unreadable(.name) }
      guard found == nil || found == target else { throw .unreadable(.chain) }
      found = target
    }
    guard found == nil, let redirection else { return found }
    let own = end.octets.count - redirection.owner.octets.count
    guard let target = DomainName(octets: end.octets[..<own] + redirection.rdata) else { throw .unreadable(.name) }
    return target
  }

  @discardableResult
  private mutating func appendSigned(_ type: RecordType) -> Bool {
    // Spelling differs between copies of one CNAME record: they are duplicates, and one is enough.
    guard section.append(end, type, limit: type == .cname ? 1 : .max, to: &records) else { return false }
    if question.dnssecOK, question.type != .rrsig {
      section.appendSignatures(end, covering: type, to: &records)
    }
    return true
  }

  /// Appends the DNAME record that the next CNAME record was made from: every answer has it (RFC 6672 section 3.2), and a
  /// validator needs its signatures.
  private mutating func append(_ redirection: ResourceRecord) {
    guard followed.insert(redirection.owner).inserted else { return }
    section.append(redirection.owner, .dname, limit: 1, to: &records)
    if question.dnssecOK, question.type != .rrsig {
      section.appendSignatures(redirection.owner, covering: .dname, to: &records)
    }
  }
}
