// Expectation.swift -- what a reply must be like, read off its query by the parser that the query path does not use.

import DNSWire
import Frontend

/// What a reply to a query must be like.
struct Expectation {
  private let query: [UInt8]
  /// The query, unless part of it cannot be read, or its question has a form that is refused unread.
  private let parsed: Message?
  /// The largest reply that the client accepts; our own limit if the query does not show it.
  private let limit: Int
  /// Whether replies are padded.
  private let isOverTLS: Bool

  init(_ query: [UInt8], _ parsed: Message?, _ transport: QueryTransport) {
    self.query = query
    self.parsed = parsed.flatMap {
      $0.unreadableRecordCount == 0 && Expectation.optCount(query, $0) == ($0.edns == nil ? 0 : 1)
        && Expectation.hasPlainQuestions($0, query) ? $0 : nil
    }
    let size = self.parsed.map { max(512, Int($0.edns?.udpPayloadSize ?? 512)) } ?? .max
    isOverTLS = transport == .dot
    limit = transport == .udp ? min(size, QueryProperty.largestOverUDP) : 65535
  }

  func check(_ reply: [UInt8]) throws(Violation) {
    try require(reply.count <= limit, "\(reply.count) octets for a client that takes \(limit)")
    guard let message = try? Message.parse(reply) else { throw Violation("a reply that cannot be parsed") }
    // The parser tolerates octets behind the message: without the last one it must be another message, or none.
    try require((try? Message.parse(Array(reply.dropLast()))) != message, "octets behind the reply")
    try checkHeader(message)
    try checkQuestion(reply, message)
    try checkRecords(message)
    try checkPadding(reply, message)
  }

  private func checkPadding(_ reply: [UInt8], _ message: Message) throws(Violation) {
    let isPadded = message.edns?.option(.padding) != nil
    try require(!isPadded || isOverTLS, "padding without TLS")
    try require(
      !isPadded || reply.count % Padding.block == 0 || reply.count == limit, "padding to \(reply.count) octets")
    guard let edns = parsed?.edns, edns.version == 0, message.edns != nil, isOverTLS else { return }
    try require(
      isPadded == (edns.option(.padding) != nil) || reply.count > limit - 4,
      "padding for a query that has none, or none")
  }

  private func checkHeader(_ reply: Message) throws(Violation) {
    let flags = UInt16(query[2]) << 8 | UInt16(query[3])
    let asked = Header(bits: flags)
    try require(reply.id == UInt16(query[0]) << 8 | UInt16(query[1]), "another ID")
    try require(reply.header.qr && reply.header.ra, "a response without QR or RA")
    try require(reply.header.opcode == asked.opcode, "another OPCODE")
    try require(reply.header.rd == asked.rd && reply.header.cd == asked.cd, "other RD or CD")
    try require(!reply.header.z, "the reserved bit")
    if let parsed {
      try require(!reply.header.ad || asked.ad || parsed.edns?.dnssecOK == true, "AD for a client without AD or DO")
    }
  }

  /// The question comes back octet by octet; there is always one where the query had one as it has to be.
  private func checkQuestion(_ reply: [UInt8], _ message: Message) throws(Violation) {
    try require(message.questions.count <= 1, "several questions")
    if let question = message.questions.first {
      let end = 12 + question.question.name.octets.count + 4
      try require(query.count >= end && reply[12..<end] == query[12..<end], "another question")
    } else {
      try require(parsed?.questions.count != 1, "no question")
    }
  }

  private func checkRecords(_ reply: Message) throws(Violation) {
    try require(reply.additionals.isEmpty && reply.foreignRecordCount == 0, "unexpected additional records")
    try require(reply.unreadableRecordCount == 0, "a record that cannot be read")
    if reply.header.tc {
      try require(reply.authorities.isEmpty, "an authority section beside TC")
      try checkTruncated(reply.answers)
    }
    if let parsed { try require((reply.edns != nil) == (parsed.edns != nil), "OPT without OPT, or none for one") }
    guard let edns = reply.edns else { return }
    try require(edns.version == 0 && Int(edns.udpPayloadSize) == QueryProperty.largestOverUDP, "another OPT record")
    if let subnet = edns.clientSubnet {
      try require(subnet.prefix == parsed?.edns?.clientSubnet?.prefix, "another client subnet")
    }
  }

  /// Only a query for addresses without DO gets records beside TC, and at least one of them is such an address.
  private func checkTruncated(_ answers: [ResourceRecord]) throws(Violation) {
    guard !answers.isEmpty, let parsed else { return }
    let type = parsed.questions.first?.question.type
    try require(type == .a || type == .aaaa, "records beside TC that are no addresses")
    try require(parsed.edns?.dnssecOK != true, "records beside TC for a client that may validate")
    try require(answers.contains { $0.type == type }, "an alias beside TC without an address")
  }

  /// The number of OPT records, wherever they stand: one that has no meaning there lets the query be refused unread.
  private static func optCount(_ octets: [UInt8], _ message: Message) -> Int {
    var (position, count) = (12, 0)
    func word(_ place: Int) -> Int { place + 1 < octets.count ? Int(octets[place]) << 8 | Int(octets[place + 1]) : 0 }
    func skipName() {
      while position < octets.count, octets[position] != 0, octets[position] < 0xC0 {
        position += 1 + Int(octets[position])
      }
      position += position < octets.count && octets[position] >= 0xC0 ? 2 : 1
    }
    for _ in message.questions {
      skipName()
      position += 4
    }
    while position < octets.count {
      skipName()
      if word(position) == RecordType.opt.rawValue { count += 1 }
      position += 10 + word(position + 8)
    }
    return count
  }

  /// Whether no QNAME has a pointer: there is no name before it that one could lead to.
  private static func hasPlainQuestions(_ message: Message, _ octets: [UInt8]) -> Bool {
    var rest = octets.dropFirst(12)
    for entry in message.questions {
      guard rest.starts(with: entry.question.name.octets) else { return false }
      rest = rest.dropFirst(entry.question.name.octets.count + 4)
    }
    return true
  }
}
