// QueryReaderTests.swift -- the fields that the hot path reads from a query, and the queries that it refuses.

import DNSWire
import TestSupport
import Testing

/// A message and its expected verdict.
struct QueryCase: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let octets: [UInt8]
  let verdict: QueryVerdict

  init(_ description: String, _ verdict: QueryVerdict, _ change: (inout RawQuery) -> Void) {
    testDescription = description
    octets = RawQuery(change).octets
    self.verdict = verdict
  }

  private static let longLabel = [64] + [UInt8](repeating: 97, count: 64) + [0]
  private static func name(octets count: Int) -> [UInt8] {
    let labels = [[UInt8]](repeating: [63] + [UInt8](repeating: 97, count: 63), count: 3).flatMap { $0 }
    return labels + [UInt8(count - 194)] + [UInt8](repeating: 98, count: count - 194) + [0]
  }

  /// A record whose RDATA is the root, then pointers, each to the previous one; another record uses the last one.
  private static func pointers(_ count: Int) -> [[UInt8]] {
    var chain: [UInt8] = [0]
    // RDATA of the first record begins at 45.
    var previous: UInt16 = 45
    for _ in 1..<count {
      let here = UInt16(45 + chain.count)
      chain += words(0xC000 | previous)
      previous = here
    }
    return [record(type: 250, chain), record(owner: words(0xC000 | previous), type: 250)]
  }

  /// Headers and questions.
  static let headers: [QueryCase] = [
    QueryCase("an ordinary query", .query) { _ in },
    QueryCase("RD=0", .query) { $0.flags = 0 },
    QueryCase("the Z bit", .query) { $0.flags |= 0x0040 },
    QueryCase("CD=1", .query) { $0.flags |= 0x0010 },
    QueryCase("TC=1", .query) { $0.flags |= 0x0200 },
    QueryCase("every flag but QR", .query) { $0.flags = 0x07FF },
    QueryCase("QR=1", .drop) { $0.flags |= 0x8000 },
    QueryCase("QR=1, and malformed", .drop) {
      $0.flags |= 0x8000; $0.name = []
    },
    QueryCase("opcode 1", .notImp) { $0.flags |= 1 << 11 },
    QueryCase("opcode 2", .notImp) { $0.flags |= 2 << 11 },
    QueryCase("opcode 5", .notImp) { $0.flags |= 5 << 11 },
    QueryCase("opcode 15", .notImp) { $0.flags |= 15 << 11 },
    QueryCase("opcode 5 with counts of its own", .notImp) {
      $0.flags |= 5 << 11; $0.counts = [1, 3, 2, 1]
    },
    QueryCase("opcode 4 with nothing else", .notImp) {
      $0.flags = 4 << 11; $0.counts = [0, 0, 0, 0]; $0.name = []
    },
    QueryCase("QDCOUNT=0", .formErr) {
      $0.counts = [0, 0, 0, 0]; $0.name = []
    },
    QueryCase("QDCOUNT=0 with an OPT record", .formErr) {
      $0.counts = [0, 0, 0, 1]; $0.name = []; $0.records = [opt()]
    },
    QueryCase("QDCOUNT=2", .formErr) {
      $0.counts = [2, 0, 0, 0]; $0.trailer = [0] + words(1, 1)
    },
    QueryCase("QDCOUNT=65535", .formErr) { $0.counts = [0xFFFF, 0, 0, 0] },
    QueryCase("ANCOUNT=1", .formErr) {
      $0.counts = [1, 1, 0, 0]; $0.records = [record(type: 1, [1, 2, 3, 4])]
    },
    QueryCase("class CH", .query) { $0.qclass = 3 },
    QueryCase("class 0", .query) { $0.qclass = 0 },
    QueryCase("class ANY", .query) { $0.qclass = 255 },
    QueryCase("QTYPE ANY", .query) { $0.type = 255 },
    QueryCase("QTYPE OPT", .formErr) { $0.type = 41 },
    QueryCase("QTYPE OPT with an OPT record", .formErr) {
      $0.type = 41; $0.records = [opt()]
    },
    QueryCase("AXFR", .query) { $0.type = 252 },
    QueryCase("IXFR with its authority record", .query) {
      $0.type = 251
      $0.counts = [1, 0, 1, 0]
      $0.records = [record(type: 6, [0, 0] + [UInt8](repeating: 0, count: 20))]
    },
    QueryCase("TYPE666", .query) { $0.type = 666 },
    QueryCase("TYPE0", .query) { $0.type = 0 },
    QueryCase("the root", .query) { $0.name = [0] },
    QueryCase("a label with a dot, a zero and 0xFF", .query) { $0.name = [4, 0x2E, 0, 0xFF, 0x2E, 0] },
    QueryCase("a label of 63 octets", .query) { $0.name = [63] + [UInt8](repeating: 97, count: 63) + [0] },
    QueryCase("a label of 64 octets", .formErr) { $0.name = longLabel },
    QueryCase("a label of type 10", .formErr) { $0.name = [0x80, 97, 0] },
    QueryCase("a name of 255 octets", .query) { $0.name = name(octets: 255) },
    QueryCase("a name of 256 octets", .formErr) { $0.name = name(octets: 256) },
    QueryCase("a name of 400 octets", .formErr) { $0.name = [UInt8](repeating: 1, count: 400) + [0] },
    QueryCase("QNAME points at itself", .formErr) { $0.name = [0xC0, 12] },
    QueryCase("QNAME points forwards", .formErr) { $0.name = [0xC0, 14, 1, 97, 0] },
    QueryCase("QNAME points at a zero octet of the header", .formErr) { $0.name = [1, 97, 0xC0, 6] },
    QueryCase("a header only, QDCOUNT=1", .formErr) {
      $0.name = []; $0.counts = [1, 0, 0, 0]
    },
    QueryCase("a question without QCLASS", .formErr) {
      $0.name = [0, 0, 1]; $0.type = 0x0100; $0.name = [1, 97]
    },
    QueryCase("10 octets of trailing garbage", .query) { $0.trailer = [UInt8](repeating: 0xC0, count: 10) },
  ]

  /// Additional records.
  static let records: [QueryCase] = [
    QueryCase("OPT", .query) { $0.records = [opt()] },
    QueryCase("EDNS version 1", .badVers) { $0.records = [opt(version: 1)] },
    QueryCase("EDNS version 255", .badVers) { $0.records = [opt(version: 255, option(65_001, [1]))] },
    QueryCase("EDNS version 1 with options of another form", .badVers) {
      $0.records = [opt(version: 1, option(3, length: 1))]
    },
    QueryCase("EDNS version 1 and opcode 2", .notImp) {
      $0.flags |= 2 << 11; $0.records = [opt(version: 1)]
    },
    QueryCase("an extended RCODE", .query) { $0.records = [opt(extendedCode: 9)] },
    QueryCase("unknown EDNS flags", .query) { $0.records = [opt(flags: 0x7FFF)] },
    QueryCase("unknown option, NSID, COOKIE, ECS, keepalive, padding", .query) {
      $0.records = [
        opt(
          option(65_001, [1, 2, 3]), option(3), option(10, [UInt8](repeating: 7, count: 8)),
          option(8, [0, 1, 24, 0, 192, 0, 2]), option(11), option(12, [UInt8](repeating: 0, count: 100)))
      ]
    },
    QueryCase("COOKIE of 3 octets", .query) { $0.records = [opt(option(10, [1, 2, 3]))] },
    QueryCase("two OPT records", .formErr) { $0.records = [opt(), opt()] },
    QueryCase("OPT with an owner", .formErr) { $0.records = [opt(owner: [1, 97, 0])] },
    QueryCase("OPT with a pointer to the root as owner", .formErr) { $0.records = [opt(owner: [0xC0, 28])] },
    QueryCase("OPT in the authority section", .formErr) {
      $0.counts = [1, 0, 1, 0]; $0.records = [opt()]
    },
    QueryCase("OPT behind another record", .query) { $0.records = [record(type: 250, [1, 2, 3]), opt()] },
    QueryCase("an option overruns RDLENGTH", .formErr) { $0.records = [opt(option(10, [1, 2], length: 3))] },
    QueryCase("an option without a length", .formErr) { $0.records = [opt([0, 10])] },
    QueryCase("RDLENGTH overruns the message", .formErr) { $0.records = [opt(option(10, [1, 2]), length: 7)] },
    QueryCase("ARCOUNT=1 but nothing there", .formErr) { $0.counts = [1, 0, 0, 1] },
    QueryCase("ARCOUNT=65535", .formErr) {
      $0.counts = [1, 0, 0, 0xFFFF]; $0.records = [opt()]
    },
    QueryCase("a record cut short", .formErr) {
      $0.counts = [1, 0, 0, 1]; $0.trailer = [0, 0, 41, 0, 0]
    },
    QueryCase("an owner that points at QNAME", .query) { $0.records = [record(type: 250)] },
    QueryCase("an owner that points at itself", .formErr) { $0.records = [record(owner: [0xC0, 33], type: 250)] },
    QueryCase("an owner that points forwards", .formErr) { $0.records = [record(owner: [0xC0, 40], type: 250)] },
    QueryCase("an owner of a label of type 01", .formErr) { $0.records = [record(owner: [0x41, 0], type: 250)] },
    QueryCase("an owner of 255 octets, 13 of them pointed at", .query) {
      $0.records = [record(owner: Array(name(octets: 240).dropLast()) + [0xC0, 16], type: 250)]
    },
    QueryCase("an owner of 256 octets, 13 of them pointed at", .formErr) {
      $0.records = [record(owner: Array(name(octets: 244).dropLast()) + [0xC0, 16], type: 250)]
    },
    QueryCase("an owner whose pointer leads to labels that reach over the pointer", .formErr) {
      // The label at 45 contains the pointer at 46 and the upper octet of TYPE; the lower octet ends the name.
      $0.records = [record(type: 250, [3]), record(owner: [0xC0, 45], type: 0)]
    },
    QueryCase("an owner of 127 pointers", .query) { $0.records = pointers(127) },
    QueryCase("an owner of 128 pointers", .formErr) { $0.records = pointers(128) },
  ]
}

@Suite struct `The reader of queries` {
  @Test(arguments: QueryCase.headers) func `the query reader decides by header and question`(_ example: QueryCase) {
    #expect(read(example.octets).verdict == example.verdict)
  }

  @Test(arguments: QueryCase.records) func `the query reader decides by records`(_ example: QueryCase) {
    #expect(read(example.octets).verdict == example.verdict)
  }

  @Test func `a query truncated within its header is dropped, and truncated later refused`() {
    let whole = RawQuery { $0.records = [opt(option(10, [1, 2, 3, 4, 5, 6, 7, 8]))] }.octets
    for length in 0..<12 { #expect(read(Array(whole[..<length])).verdict == .drop) }
    for length in 12..<whole.count { #expect(read(Array(whole[..<length])).verdict == .formErr) }
    #expect(read(whole).verdict == .query)
  }

  @Test func `the query reader returns every field of a query`() {
    let octets = RawQuery {
      $0.id = 0xBEEF
      $0.flags = 0x0130
      $0.name = DomainName(text: "WwW.eXaMpLe.cOm")!.octets
      $0.type = 65
      $0.qclass = 3
      $0.records = [
        opt(payload: 4096, flags: 0x8000, option(11), option(8, [0, 2, 56, 0, 0x20, 1, 0xD, 0xB8, 1, 2, 3]))
      ]
    }.octets
    let query = read(octets).query
    #expect(query.id == 0xBEEF)
    #expect(query.flags == 0x0130)
    #expect(query.nameLength == 17)
    #expect((query.type, query.qclass) == (65, 3))
    #expect(query.questionEnd == 12 + 17 + 4)
    #expect(query.hasOPT && query.dnssecOK && query.wantsKeepalive && query.wantsAuthenticData)
    #expect(query.recursionDesired && query.checkingDisabled)
    #expect(query.udpPayload == 4096)
    let subnet = QueryClientSubnet(family: 2, sourceLength: 56, high: 0x2001_0DB8_0102_0300)
    #expect(query.clientSubnet.isSame(as: subnet) && !query.hasBrokenSubnet)
    var name = [UInt8](repeating: 0xEE, count: 18)
    QueryReader.lowercaseName(of: octets.span, length: query.nameLength, into: &name)
    #expect(name == DomainName(text: "www.example.com")!.octets + [0xEE])
  }

  @Test func `the query reader resets the fields of the previous query`() {
    var query = Query()
    let full = RawQuery { $0.records = [opt(payload: 4096, flags: 0x8000, option(11), option(8, [0, 1, 0, 0]))] }.octets
    #expect(QueryReader.read(full.span, into: &query) == .query)
    let plain = RawQuery {
      $0.name = [0]; $0.flags = 0
    }.octets
    #expect(QueryReader.read(plain.span, into: &query) == .query)
    #expect(!query.hasOPT && !query.dnssecOK && !query.wantsKeepalive && !query.wantsAuthenticData)
    #expect(query.udpPayload == 512)
    #expect(query.clientSubnet.family == 0)
    #expect(query.questionEnd == 17)
  }

  @Test(arguments: [(0, 512), (511, 512), (512, 512), (513, 513), (1232, 1232), (65_535, 65_535)] as [(UInt16, Int)])
  func `a payload size below 512 counts as 512`(advertised: UInt16, meant: Int) {
    #expect(read(RawQuery { $0.records = [opt(payload: advertised)] }.octets).query.udpPayload == meant)
  }

  @Test func `a refused query retains the fields for an error response`() {
    let opcode = read(
      RawQuery {
        $0.flags |= 4 << 11; $0.records = [opt(flags: 0x8000)]
      }.octets
    ).query
    #expect(opcode.hasOPT && opcode.dnssecOK && opcode.nameLength == 17)
    let twice = read(RawQuery { $0.records = [opt(), opt()] }.octets).query
    #expect(twice.hasOPT && twice.questionEnd == 33)
    let broken = read(RawQuery { $0.records = [opt(payload: 4000, option(3, length: 9))] }.octets).query
    #expect(broken.hasOPT && broken.udpPayload == 4000 && broken.questionEnd == 33)
    let noQuestion = read(RawQuery { $0.name = [0xC0, 12] }.octets).query
    #expect(noQuestion.questionEnd == 12 && noQuestion.nameLength == 0 && noQuestion.id == 0x1234)
    let questions = read(
      RawQuery {
        $0.counts = [2, 0, 0, 1]; $0.records = [[0] + words(1, 1), opt()]
      }.octets
    ).query
    #expect(questions.questionEnd == 12 && questions.hasOPT)
  }
}
