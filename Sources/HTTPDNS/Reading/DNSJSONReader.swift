// DNSJSONReader.swift -- reads the JSON form of a response, which Google defined and other providers adopted.

import DNSWire
import JSON

/// Reads `Status`, `TC`, `AD`, `Question`, `Answer`, `Authority`, `edns_client_subnet` and the extended errors
/// (developers.google.com/speed/public-dns/docs/doh/json). Unknown members are ignored.
struct DNSJSONReader {
  /// Maximum records of a section: as many as a DNS message can hold, each with the shortest owner name and no RDATA.
  static let mostRecords = (Message.maximumOctetCount - Header.octetCount) / 11

  private let question: HTTPDNSQuestion
  private let requiresQuestion: Bool
  /// Whether QNAME's text has no escapes.
  private let isPlain: Bool
  /// Whether every record that only a validator needs was readable.
  private var isProofComplete = true
  /// What was wrong with a record of the Answer section that was left out.
  private var leftOut: HTTPDNSFailure?

  /// Creates a reader for one reply; `requiresQuestion` refuses a denial that does not repeat the question. Data is known by
  /// the name that it belongs to.
  init(question: HTTPDNSQuestion, requiresQuestion: Bool) {
    self.question = question
    self.requiresQuestion = requiresQuestion
    isPlain = question.name.isPlain
  }

  /// Reads the root of a reply. Call it once.
  mutating func read(_ root: JSONValue) throws(HTTPDNSFailure) -> ProviderReply {
    guard root.isObject, let status = root["Status"] else { throw .unreadable(.shape("Status")) }
    // Twelve bits: RCODE and its extension (RFC 6891 section 6.1.3).
    guard let code = status.number(upTo: 4095) else { throw .unreadable(.number) }
    var reply = ProviderReply(responseCode: ResponseCode(rawValue: UInt16(code)))
    if let asked = root["Question"] { try checkQuestion(asked) } else if requiresQuestion { leftOut = .wrongQuestion }
    // doh-server answers so if it refuses a parameter: an error of the request, and no verdict on the name.
    if code == 2, root["Question"] == nil, root["Comment"] != nil { throw .wrongQuestion }
    if root["TC"]?.boolean == true { throw .truncated }
    reply.scopePrefixLength = scope(root["edns_client_subnet"])
    reply.extendedError = ExtendedError.mostTelling(of: extendedErrors(root))
    guard code == 0 || code == 3 else { return reply }
    reply.isAuthenticated = root["AD"]?.boolean ?? false
    reply.answers = try records("Answer", of: root, isWanted: isWantedInAnswer)
    reply.authorities = try records("Authority", of: root, isWanted: isWantedInAuthority)
    reply.leftOut = leftOut
    if !isProofComplete {
      reply.answers.removeAll(where: isProof)
      reply.authorities.removeAll(where: isProof)
      reply.isAuthenticated = false
    }
    return reply
  }

  /// Checks `Question`: an object, or an array of one object.
  private func checkQuestion(_ member: JSONValue) throws(HTTPDNSFailure) {
    var asked = member
    if member.isArray {
      guard let first = member.onlyElement else { throw .wrongQuestion }
      asked = first
    }
    guard let name = asked["name"]?.octets else { throw .unreadable(.shape("Question.name")) }
    guard let type = asked["type"]?.number(upTo: 65_535) else { throw .unreadable(.shape("Question.type")) }
    guard type == UInt32(question.type.rawValue), try self.name(name) == question.name else { throw .wrongQuestion }
  }

  private mutating func records(
    _ member: StaticString, of root: JSONValue, isWanted: (RecordType) -> Bool
  ) throws(HTTPDNSFailure) -> [ResourceRecord] {
    guard let section = root[member] else { return [] }
    guard section.isArray else {
      leftOut = .unreadable(.shape("\(member)"))
      return []
    }
    guard section.count <= DNSJSONReader.mostRecords else { throw .unreadable(.tooLarge) }
    var records: [ResourceRecord] = []
    records.reserveCapacity(section.count)
    for element in section.elements {
      guard let type = element["type"]?.number(upTo: 65_535).map({ RecordType(UInt16($0)) }) else {
        leftOut = .unreadable(.shape("\(member)[].type"))
        continue
      }
      guard isWanted(type) else { continue }
      do { records.append(try record(element, type, in: member)) } catch { leaveOut(type, error) }
    }
    return records
  }

  /// Reads a record. One without a TTL is not kept for later.
  private func record(
    _ element: JSONValue, _ type: RecordType, in section: StaticString
  ) throws(HTTPDNSFailure) -> ResourceRecord {
    guard let name = element["name"]?.octets else { throw .unreadable(.shape("\(section)[].name")) }
    guard let data = element["data"], data.isString else { throw .unreadable(.shape("\(section)[].data")) }
    let owner = try self.name(name)
    guard let rdata = rdata(data, type) else {
      // The text of these types has one form, so a different text is a broken reply and not an unknown form.
      throw type == .a || type == .aaaa || type == .cname ? .unreadable(.rdata) : .unsupported
    }
    return ResourceRecord(owner: owner, type: type, ttl: try element["TTL"]?.ttl ?? 0, rdata: rdata)
  }

  /// Notes what the answer lacks without a record.
  private mutating func leaveOut(_ type: RecordType, _ failure: HTTPDNSFailure) {
    switch type {
    case question.type, .a, .aaaa, .cname: leftOut = failure
    case .soa, .ns: break
    default: isProofComplete = false
    }
  }

  private func rdata(_ data: JSONValue, _ type: RecordType) -> [UInt8]? {
    // Most records are addresses, and most of those have no escape in their JSON string.
    if type == .a || type == .aaaa, let address = data.address(isIPv6: type == .aaaa) { return address }
    return data.text.flatMap { RDATA.parse(text: $0, type: type) }
  }

  /// Parses a name with or without its final dot.
  private func name(_ text: UnsafeRawBufferPointer) throws(HTTPDNSFailure) -> DomainName {
    // Nearly every name in a reply is QNAME: do not build it again.
    if isPlain, isPlainText(text, of: question.name) { return question.name }
    guard let name = DomainName(text: String(decoding: text, as: UTF8.self)) else { throw .unreadable(.name) }
    return name
  }

  private func isWantedInAnswer(_ type: RecordType) -> Bool {
    type == question.type || type == .cname || type == .dname || question.dnssecOK && type == .rrsig
  }

  private func isWantedInAuthority(_ type: RecordType) -> Bool {
    // NS distinguishes a referral from NODATA.
    type == .soa || type == .ns || question.dnssecOK && (type == .rrsig || type.isDenialOfExistence)
  }

  /// Whether only a validator needs the record.
  private func isProof(_ record: ResourceRecord) -> Bool {
    record.type != question.type && (record.type == .rrsig || record.type == .dname || record.type.isDenialOfExistence)
  }

  /// The extended errors: Google's `extended_dns_errors`, objects with `info_code`, and Cloudflare's `Comment`, strings
  /// that begin with `EDE(n)`.
  private func extendedErrors(_ root: JSONValue) -> [ExtendedError] {
    let listed = (root["extended_dns_errors"]?.elements).map { $0.compactMap { $0["info_code"]?.number(upTo: 65_535) } }
    let comment = root["Comment"]
    let texts = comment.map { $0.isArray ? Array($0.elements) : [$0] } ?? []
    let commented = texts.compactMap { text -> UInt32? in
      guard let octets = text.octets, octets.starts(with: Array("EDE(".utf8)),
        let end = octets.firstIndex(of: UInt8(ascii: ")")), let number = decimal(octets[4..<end])
      else { return nil }
      return UInt32(exactly: number)
    }
    return ((listed ?? []) + commented).compactMap { UInt16(exactly: $0).map { ExtendedError(rawValue: $0) } }
  }

  /// The scope in `address/scope`; nil unless the address is in the subnet that was sent (RFC 7871 section 7.3).
  private func scope(_ member: JSONValue?) -> Int? {
    guard let sent = question.clientSubnet, let text = member?.octets,
      let slash = text.firstIndex(of: UInt8(ascii: "/")),
      let length = decimal(text[(slash + 1)...]), length <= sent.address.octets.count * 8,
      let address = IPAddress(text: String(decoding: text[..<slash], as: UTF8.self)), sent.contains(address)
    else { return nil }
    return length
  }
}
