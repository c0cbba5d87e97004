// QueryPathUnusualTests.swift -- unusual queries, malformed ones, and names that never go to a provider, as one table.

import DNSWire
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// A query and what is to become of it.
struct PathCase: CustomTestStringConvertible, Sendable {
  enum Expected: Sendable {
    case drop
    case forward(UInt16)
    case code(ResponseCode, ExtendedError? = nil)
    case nxDomain(of: String)
    /// NXDOMAIN whose SOA record is the name's own.
    case unknown(isAuthoritative: Bool)
    case noData(of: String)
    case addresses([String])
  }

  let testDescription: String
  let query: RawQuery
  let expected: Expected

  init(_ description: String, _ expected: Expected, _ change: (inout RawQuery) -> Void) {
    testDescription = description
    query = RawQuery(change)
    self.expected = expected
  }

  init(_ name: String, _ type: RecordType, _ expected: Expected) {
    self.init("\(name) \(type)", expected) {
      $0.name = RawQuery.name(name)
      $0.type = type.rawValue
    }
  }

  /// A name, and its IPv4 address.
  init(_ name: String, _ expected: Expected) { self.init(name, .a, expected) }

  /// `www.example.com A` is cached; nothing else is.
  static let messages: [PathCase] = [
    PathCase("an ordinary query", .addresses(["192.0.2.1"])) { _ in },
    PathCase("a miss", .forward(0)) { $0.name = RawQuery.name("miss.example.com") },
    PathCase("RD=0, cached", .addresses(["192.0.2.1"])) { $0.flags = 0 },
    PathCase("RD=0, not cached", .code(.refused)) {
      $0.flags = 0; $0.name = RawQuery.name("miss.example.com")
    },
    PathCase("RD=0, local", .addresses(["127.0.0.1"])) {
      $0.flags = 0; $0.name = RawQuery.name("localhost")
    },
    PathCase("the Z bit", .addresses(["192.0.2.1"])) { $0.flags |= 0x0040 },
    PathCase("CD=1", .addresses(["192.0.2.2"])) { $0.flags |= 0x0010 },
    PathCase("TC=1", .addresses(["192.0.2.1"])) { $0.flags |= 0x0200 },
    PathCase("AA=1", .addresses(["192.0.2.1"])) { $0.flags |= 0x0400 },
    PathCase("an RCODE in a query", .addresses(["192.0.2.1"])) { $0.flags |= 5 },
    PathCase("QR=1", .drop) { $0.flags |= 0x8000 },
    PathCase("opcode 1", .code(.notImp)) { $0.flags |= 1 << 11 },
    PathCase("opcode 2", .code(.notImp)) { $0.flags |= 2 << 11 },
    PathCase("opcode 5", .code(.notImp)) { $0.flags |= 5 << 11 },
    PathCase("opcode 15", .code(.notImp)) { $0.flags |= 15 << 11 },
    PathCase("QDCOUNT=0", .code(.formErr)) {
      $0.counts = [0, 0, 0, 0]; $0.name = []
    },
    PathCase("QDCOUNT=2", .code(.formErr)) {
      $0.counts = [2, 0, 0, 0]; $0.trailer = [0] + words(1, 1)
    },
    PathCase("ANCOUNT=1", .code(.formErr)) {
      $0.counts = [1, 1, 0, 0]; $0.records = [record(type: 1, [1, 2, 3, 4])]
    },
    PathCase("class CH A", .code(.refused)) { $0.qclass = 3 },
    PathCase("version.bind CH TXT", .code(.refused)) {
      $0.qclass = 3; $0.type = 16; $0.name = RawQuery.name("version.bind")
    },
    PathCase("id.server CH TXT", .code(.refused)) {
      $0.qclass = 3; $0.type = 16; $0.name = RawQuery.name("id.server")
    },
    PathCase("class 0", .code(.refused)) { $0.qclass = 0 },
    PathCase("class ANY", .code(.refused)) { $0.qclass = 255 },
    PathCase("QTYPE OPT", .code(.formErr)) { $0.type = 41 },
    PathCase("AXFR", .code(.refused)) { $0.type = 252 },
    PathCase("IXFR", .code(.refused)) {
      $0.type = 251
      $0.counts = [1, 0, 1, 0]
      $0.records = [record(type: 6, [0, 0] + [UInt8](repeating: 0, count: 20))]
    },
    PathCase("MAILB", .code(.refused)) { $0.type = 253 },
    PathCase("TYPE0", .code(.refused)) { $0.type = 0 },
    PathCase("TYPE666", .forward(0)) { $0.type = 666 },
    PathCase("TYPE65535", .forward(0)) { $0.type = 65_535 },
    PathCase("EDNS version 1", .code(.badVers)) { $0.records = [opt(version: 1)] },
    PathCase("EDNS version 1 with options of another form", .code(.badVers)) {
      $0.records = [opt(version: 1, [8, 0, 255, 1])]
    },
    PathCase("65,507 octets, all but a few of them padding", .addresses(["192.0.2.1"])) {
      $0.records = [opt(option(12, [UInt8](repeating: 0, count: 65_507 - 48)))]
    },
    PathCase("65,507 octets, all but a few of them behind the message", .addresses(["192.0.2.1"])) {
      $0.trailer = [UInt8](repeating: 0xC0, count: 65_507 - 33)
    },
    PathCase("unknown options and flags", .addresses(["192.0.2.1"])) {
      $0.records = [
        opt(
          flags: 0x7FFF, option(65_001, [1, 2, 3]), option(3), option(10, [UInt8](repeating: 7, count: 8)),
          option(8, [0, 1, 24, 0, 192, 0, 2]), option(11), option(12, [UInt8](repeating: 0, count: 100)))
      ]
    },
    PathCase("COOKIE of 3 octets", .addresses(["192.0.2.1"])) { $0.records = [opt(option(10, [1, 2, 3]))] },
    PathCase("a broken client subnet", .addresses(["192.0.2.1"])) { $0.records = [opt(option(8, [1, 2, 3]))] },
    PathCase("two OPT records", .code(.formErr)) { $0.records = [opt(), opt()] },
    PathCase("an option overruns RDLENGTH", .code(.formErr)) { $0.records = [opt(option(10, [1, 2], length: 3))] },
    PathCase("ARCOUNT=1 but nothing there", .code(.formErr)) { $0.counts = [1, 0, 0, 1] },
    PathCase("10 octets of trailing garbage", .addresses(["192.0.2.1"])) {
      $0.trailer = [UInt8](repeating: 9, count: 10)
    },
    PathCase("a header only, QDCOUNT=1", .code(.formErr)) {
      $0.name = []; $0.counts = [1, 0, 0, 0]
    },
    PathCase("QNAME points at itself", .code(.formErr)) { $0.name = [0xC0, 12] },
    PathCase("QNAME points forwards", .code(.formErr)) { $0.name = [0xC0, 14, 1, 97, 0] },
    PathCase("a label of 64 octets", .code(.formErr)) { $0.name = [64] + [UInt8](repeating: 97, count: 64) + [0] },
    PathCase("a name of 256 octets", .code(.formErr)) {
      $0.name = [UInt8](repeating: 1, count: 254) + [1, 97, 0]
    },
    PathCase("a label with a dot, a zero and 0xFF, not cached", .forward(0)) {
      $0.name = [4, 0x2E, 0, 0xFF, 0x2E] + RawQuery.name("example.com")
    },
    PathCase("the root", .forward(0)) {
      $0.name = [0]; $0.type = 2
    },
  ]

  /// Names of behaviour's sections 2 and 8, on a machine with LocalDNS.
  static let names: [PathCase] = [
    PathCase("localhost", .addresses(["127.0.0.1"])),
    PathCase("localhost", .aaaa, .addresses(["::1"])),
    PathCase("x.LocalHost", .addresses(["127.0.0.1"])),
    PathCase("localhost", .mx, .noData(of: "localhost")),
    PathCase("test", .nxDomain(of: "test")),
    PathCase("a.b.test", .mx, .nxDomain(of: "test")),
    PathCase("x.invalid", .nxDomain(of: "invalid")),
    PathCase("x.onion", .nxDomain(of: "onion")),
    PathCase("printer.local", .nxDomain(of: "local")),
    PathCase("x.alt", .nxDomain(of: "alt")),
    PathCase("x.service.arpa", .nxDomain(of: "service.arpa")),
    PathCase("_dns.resolver.arpa", .svcb, .noData(of: "resolver.arpa")),
    PathCase("use-application-dns.net", .nxDomain(of: "use-application-dns.net")),
    PathCase("home.arpa", .forward(1)),
    PathCase("nas.home.arpa", .aaaa, .forward(1)),
    PathCase("vm.internal", .forward(1)),
    PathCase("intranet", .forward(1)),
    PathCase("intranet", .aaaa, .forward(1)),
    PathCase("com", .ds, .forward(0)),
    PathCase("com", .ns, .forward(0)),
    PathCase("host.corp.example", .forward(4)),
    PathCase("host.lan", .forward(1)),
    PathCase("nas", .https, .forward(1)),
    PathCase("ipv4only.arpa", .aaaa, .forward(1)),
    PathCase("1.2.3.4", .unknown(isAuthoritative: false)),
    PathCase("999", .unknown(isAuthoritative: false)),
    PathCase("1.0.0.10.in-addr.arpa", .ptr, .forward(1)),
    PathCase("1.16.172.in-addr.arpa", .ptr, .forward(1)),
    PathCase("1.64.100.in-addr.arpa", .ptr, .forward(1)),
    PathCase("1.0.0.d.f.ip6.arpa", .ptr, .forward(1)),
    PathCase("8.8.8.8.in-addr.arpa", .ptr, .forward(0)),
    PathCase("1.1.254.169.in-addr.arpa", .ptr, .nxDomain(of: "254.169.in-addr.arpa")),
    PathCase("1.2.0.192.in-addr.arpa", .ptr, .nxDomain(of: "2.0.192.in-addr.arpa")),
    PathCase("1.0.0.0.0.0.0.8.e.f.ip6.arpa", .ptr, .nxDomain(of: "8.e.f.ip6.arpa")),
  ]

  /// The same without LocalDNS.
  static let namesAlone: [PathCase] = [
    PathCase("home.arpa", .unknown(isAuthoritative: true)),
    PathCase("vm.internal", .unknown(isAuthoritative: true)),
    PathCase("com", .unknown(isAuthoritative: false)),
    PathCase("com", .https, .unknown(isAuthoritative: false)),
    PathCase("com", .ds, .forward(0)),
    PathCase("host.corp.example", .forward(0)),
    PathCase("1.0.0.10.in-addr.arpa", .ptr, .unknown(isAuthoritative: true)),
    PathCase("1.0.0.d.f.ip6.arpa", .ptr, .unknown(isAuthoritative: true)),
    PathCase("ipv4only.arpa", .addresses(["192.0.0.170", "192.0.0.171"])),
    PathCase("localhost", .addresses(["127.0.0.1"])),
  ]
}

@Suite struct `The query path` {
  private func scene(hasLocalDNS: Bool = true) throws -> QueryPathScene {
    let scene = try QueryPathScene(hasLocalDNS: hasLocalDNS, searchDomains: ["corp.example"])
    try scene.keep("www.example.com", [address("www.example.com", 1)])
    let other = try #require(
      ComposedResponse(
        .noError, to: DomainName(text: "www.example.com")!, answers: [address("www.example.com", 2)]))
    scene.keep("www.example.com", checkingDisabled: true, other)
    return scene
  }

  @Test(arguments: PathCase.messages, [QueryTransport.udp, .tcp])
  func `each unusual query gets its documented answer`(_ example: PathCase, _ transport: QueryTransport) throws {
    try expect(example, scene(), transport)
  }

  @Test(arguments: PathCase.messages)
  func `unusual queries with OPT get the same answers with OPT`(_ example: PathCase) throws {
    guard example.query.records.isEmpty, example.query.counts == nil, example.query.trailer.isEmpty else { return }
    var query = example.query
    query.records = [opt(flags: 0x8000)]
    // Behind a question that cannot be read nothing can be found.
    guard case .reply(let octets) = try scene().ask(query.octets), octets[5] == 1 else { return }
    let edns = try #require(try Message.parse(octets).edns)
    #expect(edns.udpPayloadSize == 1232)
    #expect(edns.dnssecOK)
    #expect(edns.version == 0)
  }

  @Test(arguments: PathCase.names) func `special names are answered locally or sent to the network`(_ example: PathCase)
    throws
  {
    try expect(example, scene(), .udp)
  }

  @Test(arguments: PathCase.namesAlone) func `names of the network are NXDOMAIN without LocalDNS`(_ example: PathCase)
    throws
  {
    try expect(example, scene(hasLocalDNS: false), .udp)
  }

  @Test func `loopback addresses have their reverse names`() throws {
    let scene = try scene()
    for name in ["1.0.0.127.in-addr.arpa", "1." + String(repeating: "0.", count: 31) + "ip6.arpa"] {
      let message = try scene.reply(name, .ptr)
      #expect(message.answers.map(\.rdata) == [RawQuery.name("localhost")])
      #expect(message.header.aa)
    }
  }

  private func expect(_ example: PathCase, _ scene: QueryPathScene, _ transport: QueryTransport) throws {
    let result = scene.ask(example.query.octets, transport)
    switch example.expected {
    case .drop: #expect(result == .drop)
    case .forward(let route): #expect(result == .forward(route))
    case .code(let code, let extendedError):
      let message = try self.message(result, example)
      #expect(message.responseCode == code)
      #expect(message.answers.isEmpty && message.authorities.isEmpty)
      #expect(!message.header.aa && !message.header.tc)
      if let extendedError { #expect(message.extendedError == extendedError) }
    case .nxDomain(let zone):
      let message = try self.message(result, example)
      #expect(message.responseCode == .nxDomain)
      try expectSOA(message, zone)
    case .unknown(let isAuthoritative):
      let message = try self.message(result, example)
      #expect(message.responseCode == .nxDomain)
      #expect(message.authorities.map(\.owner) == message.questions.map(\.question.name))
      #expect(message.authorities.map(\.type) == [.soa])
      #expect(message.header.aa == isAuthoritative)
    case .noData(let zone):
      let message = try self.message(result, example)
      #expect(message.responseCode == .noError)
      try expectSOA(message, zone)
    case .addresses(let texts):
      let message = try self.message(result, example)
      #expect(message.responseCode == .noError)
      #expect(message.answers.map { IPAddress(octets: $0.rdata)?.description } == texts)
      #expect(message.answers.allSatisfy { $0.owner == message.questions.first?.question.name })
      #expect(message.header.aa == (texts != ["192.0.2.1"] && texts != ["192.0.2.2"]))
    }
  }

  private func message(_ result: PathResult, _ example: PathCase) throws -> Message {
    guard case .reply(let octets) = result else {
      Issue.record("\(example.testDescription): \(result)")
      throw CancellationError()
    }
    expectUsualHeader(octets, example.query, #_sourceLocation)
    return try Message.parse(octets)
  }

  /// A negative answer has the SOA record of its zone, without which stub resolvers cannot keep it.
  private func expectSOA(_ message: Message, _ zone: String) throws {
    #expect(message.answers.isEmpty)
    let soa = try #require(message.authorities.first)
    #expect(message.authorities.count == 1)
    #expect(soa.type == .soa)
    #expect(soa.owner == DomainName(octets: RawQuery.name(zone)))
    #expect(soa.ttl > 0)
    #expect(message.header.aa)
  }
}
