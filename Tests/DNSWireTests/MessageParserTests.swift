// MessageParserTests.swift -- octets → Message: accepted and refused messages.

import DNSWire
import Testing

@Suite struct MessageParserTests {
  @Test func `a response is read with all its sections`() throws {
    let message = try Message.parse(
      response(
        answers: 2, authorities: 1, additionals: 1,
        "C00C 0005 0001 0000003C 0004 0162C00C" + "C01F 0001 0001 0000001E 0004 C0000201"
          + "C00C 0002 0001 00000E10 0005 026E73C00C"
          + "C00C 001C 0001 00000001 0010 20010DB8000000000000000000000001"))
    #expect(message.id == 0x1234)
    #expect(message.header.qr && message.header.rd && message.header.ra && !message.header.aa && !message.header.tc)
    #expect(message.asks(Question(name: name("A."), type: .a)))
    #expect(!message.asks(Question(name: name("a."), type: .aaaa)))
    #expect(
      message.answers == [
        ResourceRecord(owner: name("a."), type: .cname, ttl: 60, rdata: octets("01620161 00")),
        ResourceRecord(owner: name("b.a."), type: .a, ttl: 30, rdata: [192, 0, 2, 1]),
      ])
    #expect(message.authorities.map(\.rdata) == [octets("026E73 0161 00")])
    #expect(message.additionals.map(\.type) == [.aaaa])
    #expect(message.edns == nil)
    #expect(message.responseCode == .noError)
  }

  @Test(arguments: 0..<12)
  func `octets shorter than a header are refused as such`(count: Int) {
    #expect(throws: WireError.shortHeader) { try Message.parse([UInt8](repeating: 0, count: count)) }
  }

  @Test func `a message truncated before its additional section is refused`() throws {
    let answer = "C00C 0010 0001 0000003C 0006 05 68656C6C6F"
    let whole = response(answers: 1, additionals: 1, answer + "00 0029 04D0 00008000 0006 000C0002 0000")
    let end = response(answers: 1, additionals: 1, answer).count
    for count in 12..<end {
      #expect(throws: WireError.self, "\(count) octets") { try Message.parse(Array(whole[..<count])) }
    }
    for count in end..<whole.count {
      let message = try Message.parse(Array(whole[..<count]))
      #expect(message.answers.count == 1 && message.edns == nil, "\(count) octets")
    }
  }

  @Test func `an authority section with an invalid name is left out behind answers, and refused without them`() throws {
    let answer = "C00C 0001 0001 0000003C 0004 C0000201"
    let senseless = "80 00 0002 0001 0000003C 0002 C00C"
    let message = try Message.parse(response(answers: 1, authorities: 1, additionals: 1, answer + senseless))
    #expect(message.answers.count == 1 && message.authorities.isEmpty && message.additionals.isEmpty)
    // It may have denied data, so that an alias without data is no denial.
    #expect(message.unreadableRecordCount == 1)
    #expect(throws: WireError.labelType) { try Message.parse(response(authorities: 1, senseless)) }
    #expect(throws: WireError.labelType) {
      try Message.parse(response(answers: 1, authorities: 1, senseless + "C00C 0002 0001 0000003C 0002 C00C"))
    }
    // What is cut off may have more to say by TCP.
    #expect(throws: WireError.truncated) {
      try Message.parse(response(answers: 1, authorities: 1, answer + "C00C 0002"))
    }
  }

  @Test func `octets after the message are ignored`() throws {
    #expect(try Message.parse(response("FFFFFFFF")) == Message.parse(response("")))
  }

  /// Names in the place of QNAME, at offset 12.
  @Test(arguments: [
    ("a label longer than 63 octets", "40" + String(repeating: "61", count: 64) + "00", WireError.labelType),
    ("a label of type 10", "80 00", .labelType),
    ("a pointer to itself", "C00C", .pointer),
    ("a pointer forwards", "C00E 0161 00", .pointer),
    ("a pointer to the name's own beginning", "0161 C00C", .pointer),
    ("a pointer without its second octet", "C0", .truncated),
    ("no end", "0161", .truncated),
    ("256 octets", String(repeating: "0161", count: 127) + "0100 00", .nameTooLong),
  ])
  func `a malformed name is refused`(what: String, hexadecimal: String, error: WireError) {
    let header: [UInt8] = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    let end: [UInt8] = error == .truncated ? [] : [0, 1, 0, 1]
    #expect(throws: error, "\(what)") { try Message.parse(header + octets(hexadecimal) + end) }
  }

  @Test func `a name of 255 octets and a label of 63 are read`() throws {
    let label = "3F" + String(repeating: "61", count: 63)
    let longest = octets(label + label + label + "3D" + String(repeating: "62", count: 61) + "00")
    #expect(longest.count == 255)
    let message = try Message.parse([0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0] + longest + [0, 1, 0, 1])
    #expect(message.questions[0].question.name.octets == longest)
  }

  /// Each pointer of the chain leads to the previous one, the first one to QNAME.
  @Test(arguments: [(127, true), (128, false)])
  func `a chain of pointers is limited`(count: Int, isRead: Bool) {
    var rdata: [UInt8] = []
    let start = 19 + 11
    var target = 12
    for index in 0..<(count - 1) {
      rdata += [0xC0 | UInt8(target >> 8), UInt8(target & 0xFF)]
      target = start + index * 2
    }
    let chain = octets("00 FFFF 0001 00000000 00") + [UInt8(rdata.count)] + rdata
    let record: [UInt8] =
      [0xC0 | UInt8(target >> 8), UInt8(target & 0xFF)] + octets("0001 0001 00000000 0004 C0000201")
    let message = try? Message.parse(response(answers: 2, "") + chain + record)
    #expect((message != nil) == isRead)
    if let message { #expect(message.answers[1].owner == name("a.")) }
  }

  @Test func `a pointer into its own name is refused`() {
    // The owner at 19 points to 18, where QCLASS ends with 01: a label of that length would hold the pointer's own
    // first octet, the next one 18 octets of the record, and the last octet would end it all.
    #expect(throws: WireError.truncated) {
      try Message.parse(response(answers: 1, "C012 0001 0001 00000000 0004 C0000201 FFFFFFFF 00"))
    }
  }

  @Test func `a TTL with the highest bit set becomes 0, and the largest valid one is unchanged`() throws {
    let message = try Message.parse(
      response(answers: 2, "C00C 0001 0001 80000001 0004 C0000201" + "C00C 0001 0001 7FFFFFFF 0004 C0000201"))
    #expect(message.answers.map(\.ttl) == [0, 0x7FFF_FFFF])
  }

  @Test func `records of other classes are counted and dropped, whatever their RDATA`() throws {
    let message = try Message.parse(
      response(answers: 2, "C00C 0001 0003 0000003C 0003 0161 00" + "C00C 0001 0001 0000003C 0004 C0000201"))
    #expect(message.foreignRecordCount == 1)
    #expect(message.answers.map(\.rdata) == [[192, 0, 2, 1]])
  }

  @Test func `an unknown type's RDATA is opaque`() throws {
    let message = try Message.parse(response(answers: 1, "C00C FF00 0001 0000003C 0002 C00C"))
    #expect(message.answers[0].rdata == [0xC0, 0x0C])
  }

  @Test(arguments: [
    ("A of 5 octets", RecordType.a, "C000020100"), ("A of 3 octets", .a, "C00002"),
    ("AAAA of 4 octets", .aaaa, "C0000201"), ("CNAME with more behind the name", .cname, "0161 00 00"),
    ("CNAME of nothing", .cname, ""), ("CNAME with a pointer forwards", .cname, "C0FF"),
    ("MX without a name", .mx, "000A"), ("SOA without its last number", .soa, "00 00 00000001000000020000000300000004"),
    ("TXT with a string longer than the RDATA", .txt, "03 6162"),
    ("HINFO of one string", .hinfo, "01 61"), ("DS without its digest type", .ds, "0001 08"),
    ("CAA without a tag", .caa, "00"),
    ("HTTPS with a value longer than the RDATA", .https, "0001 00 0003 0003 01BB"),
    ("NAPTR without a replacement", .naptr, "0001 0001 00 00 00"),
  ])
  func `a record that cannot have the form of its type is left out`(what: String, type: RecordType, rdata: String)
    throws
  {
    let message = try parse(type, rdata)
    #expect(message.answers.map(\.rdata) == [[192, 0, 2, 1]], "\(what)")
    #expect(message.unreadableRecordCount == 1)
  }

  /// Rules of a type beyond its lengths are not judged (RFC 3597, RFC 9460 section 4.3).
  @Test(arguments: [
    ("TXT of nothing", RecordType.txt, ""), ("CAA with an empty tag", .caa, "00 00 6162"),
    ("CAA with a space in its tag", .caa, "00 0120 61"),
    ("HTTPS with descending keys", .https, "0001 00 0003 0002 01BB 0001 0003 026832"),
    ("HTTPS with a key twice", .https, "0001 00 0003 0002 01BB 0003 0002 01BB"),
  ])
  func `a record that breaks a rule of its type is passed on as it is`(
    what: String, type: RecordType, rdata: String
  ) throws {
    let message = try parse(type, rdata)
    #expect(message.answers.map(\.rdata) == [octets(rdata), [192, 0, 2, 1]], "\(what)")
    #expect(message.unreadableRecordCount == 0)
    // Its text is one that gives the same octets.
    #expect(RDATA.parse(text: RDATA.text(octets(rdata), type: type), type: type) == octets(rdata))
  }

  /// A response with such a record before a readable one, and with another one in the additional section.
  private func parse(_ type: RecordType, _ rdata: String) throws -> Message {
    let rdata = octets(rdata)
    let record =
      [0xC0, 0x0C, UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF)] + octets("0001 0000003C 00")
      + [UInt8(rdata.count)] + rdata
    return try Message.parse(
      response(answers: 2, additionals: 1, "") + record + octets("C00C 0001 0001 0000003C 0004 C0000201") + record)
  }

  /// QNAME `a.` is at offset 12; every name is a pointer to it.
  @Test(arguments: [
    (RecordType.mx, "000A C00C", "000A 0161 00"), (.srv, "0001 0002 0003 C00C", "0001 0002 0003 0161 00"),
    (.soa, "C00C C00C" + String(repeating: "00", count: 20), "0161 00 0161 00" + String(repeating: "00", count: 20)),
    (.naptr, "0001 0002 00 00 00 C00C", "0001 0002 00 00 00 0161 00"), (.dname, "0162 C00C", "0162 0161 00"),
    (.https, "0000 C00C", "0000 0161 00"), (RecordType(14), "C00C C00C", "0161 00 0161 00"),
  ])
  func `names in RDATA come out uncompressed`(type: RecordType, rdata: String, expected: String) throws {
    let rdata = octets(rdata)
    let record = [0xC0, 0x0C, UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF)] + octets("0001 0000003C 00")
    let message = try Message.parse(response(answers: 1, "") + record + [UInt8(rdata.count)] + rdata)
    #expect(message.answers[0].rdata == octets(expected))
  }
}
