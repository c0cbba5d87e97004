// AnswerChain.swift -- follows CNAME and DNAME records from QNAME to the RRset in question.

import DNSWire

/// An Answer section sorted into the order that stub resolvers expect.
struct AnswerChain {
  /// Maximum CNAME links; other resolvers stop at about as many.
  static let maximumLinks = 16

  private let question: HTTPDNSQuestion
  /// The index of the section; it counts the work for tests.
  private(set) var section: SectionIndex
  /// The owners of the section's DNAME records.
  private let redirected: Set<DomainName>
  /// The owners of the DNAME records that the chain contains.
  private var followed: Set<DomainName> = []
  /// The chain, then the RRset of QTYPE; with DO each RRset is followed by its signatures.
  private(set) var records: [ResourceRecord] = []
  /// The end of the chain: the owner of the RRset in question, or the name that has no such RRset.
  private(set) var end: DomainName
  /// Whether the section has an RRset of QTYPE at the end of the chain.
  private(set) var hasData = false

  /// Follows the chain through an Answer section, starting at QNAME.
  ///
  /// Of several CNAME records at one name, the first with data or a CNAME record at its target counts.
  ///
  /// - Throws: `.unreadable(.chain)` for a loop, more than `maximumLinks` links, or data of QTYPE only at names that no link
  ///   leads to. Such a section does not answer QNAME, and to read it as NODATA would be a guess.
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

  /// Whether the section has data of QTYPE that no link leads to. A DNAME record that the chain contains is not such
  /// data.
  private var hasStrays: Bool {
    question.type == .dname ? redirected.count > followed.count : section.records.contains { $0.type == question.type }
  }

  /// Returns the DNAME record of the closest ancestor of the chain's end (RFC 6672 section 2.3).
  private mutating func redirection() -> ResourceRecord? {
    guard !redirected.isEmpty else { return nil }
    var name = end
    while let parent = name.parent {
      if redirected.contains(parent) { return section.rrset(parent, .dname).first.map { section.records[$0] } }
      name = parent
    }
    return nil
  }

  /// Returns the target of the CNAME record at the chain's end, or of the CNAME record that is synthesized from its
  /// DNAME record (RFC 6672 section 3.1); nil if there is neither.
  private mutating func target(_ redirection: ResourceRecord?) throws(HTTPDNSFailure) -> DomainName? {
    var targets: [DomainName] = []
    for place in section.rrset(end, .cname) {
      guard let target = DomainName(octets: section.records[place].rdata) else { throw .unreadable(.name) }
      guard targets.first != target else { continue }
      targets.append(target)
      // A name of a usual section has one target, and need not be looked ahead for.
      guard targets.count < AnswerChain.maximumLinks else { break }
    }
    if targets.count > 1 {
      for target in targets where leadsOn(target) { return target }
    }
    guard targets.isEmpty, let redirection else { return targets.first }
    let own = end.octets.count - redirection.owner.octets.count
    guard let target = DomainName(octets: end.octets[..<own] + redirection.rdata) else { throw .unreadable(.name) }
    return target
  }

  /// Whether the section has data of QTYPE or a CNAME record at a name.
  private mutating func leadsOn(_ name: DomainName) -> Bool {
    !section.rrset(name, question.type).isEmpty || !section.rrset(name, .cname).isEmpty
  }

  @discardableResult
  private mutating func appendSigned(_ type: RecordType) -> Bool {
    // Copies of one CNAME record may differ in the case of their target: they are duplicates.
    guard section.append(end, type, limit: type == .cname ? 1 : .max, to: &records) else { return false }
    if question.dnssecOK, question.type != .rrsig { section.appendSignatures(end, covering: type, to: &records) }
    return true
  }

  /// Appends the DNAME record that the next CNAME record is synthesized from: a response includes it (RFC 6672 section
  /// 3.2), and a validator needs its signatures.
  private mutating func append(_ redirection: ResourceRecord) {
    guard followed.insert(redirection.owner).inserted else { return }
    section.append(redirection.owner, .dname, limit: 1, to: &records)
    if question.dnssecOK, question.type != .rrsig {
      section.appendSignatures(redirection.owner, covering: .dname, to: &records)
    }
  }
}
