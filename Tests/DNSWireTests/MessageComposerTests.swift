// MessageComposerTests.swift -- Message → octets and back.

import DNSWire
import TestSupport
import Testing

@Suite struct MessageComposerTests {
  @Test func `the query of RFC 8484 section 4.1.1 is reproduced exactly`() throws {
    let query = Message.query(Question(name: name("www.example.com."), type: .a), id: 0)
    #expect(
      try query.compose()
        == octets("0000 0100 0001 0000 0000 0000 03777777 076578616D706C65 03636F6D 00 0001 0001"))
  }

  @Test func `the OPT record is last and has its options`() throws {
    let subnet = ClientSubnet(IPPrefix(text: "192.0.2.0/24")!)
    let edns = EDNS(udpPayloadSize: 4096, dnssecOK: true, options: [subnet.option])
    let query = Message.query(Question(name: .root, type: .ns), id: 7, edns: edns)
    #expect(
      try query.compose()
        == octets("0007 0100 0001 0000 0000 0001 00 0002 0001 00 0029 1000 0000 8000 000B 0008 0007 0001 18 00 C00002"))
  }

  @Test func `owner names are compressed, and RDATA is not`() throws {
    var message = Message.query(Question(name: name("www.example.com."), type: .a), id: 0)
    message.answers = [
      ResourceRecord(owner: name("www.example.com."), type: .cname, ttl: 1, rdata: name("a.example.com.").octets),
      ResourceRecord(owner: name("a.example.com."), type: .a, ttl: 1, rdata: [192, 0, 2, 1]),
    ]
    let octets = try message.compose()
    #expect(octets[33...34] == [0xC0, 12])
    #expect(octets.count == 33 + 12 + 15 + 14 + 4)
  }

  @Test func `a name in another case is not replaced by a pointer`() throws {
    var message = Message.query(Question(name: name("Example.com."), type: .a), id: 0)
    message.answers = [ResourceRecord(owner: name("example.com."), type: .a, ttl: 1, rdata: [192, 0, 2, 1])]
    let parsed = try Message.parse(try message.compose())
    #expect(parsed.answers[0].owner.octets == name("example.com.").octets)
    #expect(parsed.questions[0].question.name.octets == name("Example.com.").octets)
  }

  @Test(arguments: 1...200)
  func `queries are padded to whole blocks of 128 octets`(length: Int) throws {
    let labels = stride(from: 0, to: length, by: 60).map { String(repeating: "x", count: min(60, length - $0)) }
    let question = Question(name: name(labels.joined(separator: ".")), type: .https)
    let octets = try Message.query(question, id: 0, edns: EDNS()).compose(paddedTo: Message.queryPaddingBlock)
    #expect(octets.count.isMultiple(of: 128))
    let message = try Message.parse(octets)
    #expect(message.edns?.options.map(\.code) == [.padding])
    #expect(message.edns?.options[0].data.allSatisfy { $0 == 0 } == true)
    #expect(message.asks(question))
  }

  @Test func `a message that does not fit is refused`() {
    var message = Message.query(Question(name: .root, type: .txt), id: 0)
    let half = ResourceRecord(
      owner: .root, type: RecordType(65_280), ttl: 0, rdata: [UInt8](repeating: 0, count: 33_000))
    message.answers = [half]
    #expect(throws: Never.self) { try message.compose() }
    message.answers = [half, half]
    #expect(throws: WireError.tooLong) { try message.compose() }
    message.answers = [ResourceRecord(owner: .root, type: .txt, ttl: 0, rdata: [UInt8](repeating: 0, count: 65_536))]
    #expect(throws: WireError.tooLong) { try message.compose() }
    let option = EDNS.Option(code: .padding, data: [UInt8](repeating: 0, count: 40_000))
    message = Message.query(Question(name: .root, type: .txt), id: 0, edns: EDNS(options: [option, option]))
    #expect(throws: WireError.tooLong) { try message.compose() }
  }

  @Test func `a pointer never exceeds 14 bits`() throws {
    var message = Message.query(Question(name: .root, type: .txt), id: 0)
    let filler = ResourceRecord(
      owner: .root, type: RecordType(65_280), ttl: 0, rdata: [UInt8](repeating: 0, count: 16_360))
    let owners = ["far.example.", "far.example.", "x.far.example."]
    message.answers = [filler] + owners.map { ResourceRecord(owner: name($0), type: .a, ttl: 0, rdata: [1, 2, 3, 4]) }
    #expect(try Message.parse(try message.compose()) == message)
  }

  @Test func `parse after compose is the identity`() throws {
    var mutator = MessageMutator(seed: testSeed)
    for _ in 0..<2_000 {
      guard var message = try? Message.parse(mutator.damagedResponse()) else { continue }
      message.foreignRecordCount = 0
      message.unreadableRecordCount = 0
      let octets = try message.compose()
      let parsed = try Message.parse(octets)
      #expect(parsed == message)
      // Names compare without regard to case, octets do not.
      #expect(try parsed.compose() == octets)
    }
  }

  @Test func `every flag has its own bits`() {
    let flags: [(WritableKeyPath<Header, Bool>, UInt16)] = [
      (\.qr, 0x8000), (\.aa, 0x0400), (\.tc, 0x0200), (\.rd, 0x0100), (\.ra, 0x0080), (\.z, 0x0040), (\.ad, 0x0020),
      (\.cd, 0x0010),
    ]
    for (flag, bits) in flags {
      var header = Header()
      header[keyPath: flag] = true
      #expect(header.bits == bits)
      header = Header(bits: 0xFFFF)
      header[keyPath: flag] = false
      #expect(header.bits == ~bits)
    }
    var header = Header(bits: 0xFFFF)
    header.opcode = 5
    header.rcode = 3
    #expect(header.bits == 0xAFF3)
    #expect(header.opcode == 5 && header.rcode == 3)
  }
}
