// QueryPathAnswerTests.swift -- answers from the cache: sizes, ageing, case, negative answers, AD, and refused clients.

import DNSWire
import MessageCache
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `An answer from the cache` {
  private let name = "www.example.com"

  @Test func `a cached answer echoes the case of the question, also in its owner names`() throws {
    let scene = try QueryPathScene()
    try scene.keep(name, [address(name, 1), address(name, 2)])
    for spelling in ["wWw.ExAmPlE.cOm", "WWW.EXAMPLE.COM", "www.example.com"] {
      let query = RawQuery { $0.name = RawQuery.name(spelling) }
      guard case .reply(let octets) = scene.ask(query.octets) else { throw CancellationError() }
      let message = try Message.parse(octets)
      #expect(message.questions.first?.question.name.octets == RawQuery.name(spelling))
      #expect(message.answers.map(\.owner.octets) == [RawQuery.name(spelling), RawQuery.name(spelling)])
    }
  }

  @Test func `a cached answer is truncated to the addresses that fit, and whole over TCP`() throws {
    let scene = try QueryPathScene()
    try scene.keep(name, [text(name, octets: 1536)])
    try scene.keep("big.example.com", [text("big.example.com", octets: 5120)])
    try scene.keep("many.example.com", (0..<60).map { address("many.example.com", $0) })
    let queries: [(RawQuery, fits: Bool)] = [
      (RawQuery { $0.type = 16 }, false),
      (
        RawQuery {
          $0.type = 16; $0.records = [opt(payload: 4096)]
        }, false
      ),
      (
        RawQuery {
          $0.type = 16; $0.records = [opt(payload: 100)]
        }, false
      ),
      (
        RawQuery {
          $0.type = 16; $0.name = RawQuery.name("big.example.com")
        }, false
      ),
      (RawQuery { $0.name = RawQuery.name("many.example.com") }, false),
      (
        RawQuery {
          $0.name = RawQuery.name("many.example.com"); $0.records = [opt(payload: 1232)]
        }, true
      ),
    ]
    for (query, fits) in queries {
      let overUDP = try scene.reply(query)
      #expect(overUDP.header.tc == !fits)
      #expect(overUDP.answers.isEmpty == (query.type == 16))
      #expect(overUDP.authorities.isEmpty)
      #expect((overUDP.edns != nil) == !query.records.isEmpty)
      let overTCP = try scene.reply(query, .tcp)
      #expect(!overTCP.header.tc)
      #expect(overTCP.answers.count == (query.type == 16 ? 1 : 60))
    }
    #expect(
      try scene.reply(
        RawQuery {
          $0.type = 16; $0.name = RawQuery.name("big.example.com")
        }, .tcp
      ).answers[0].rdata.count == 5120)
  }

  @Test func `a cached answer may be larger if listener and client allow it`() throws {
    let scene = try QueryPathScene(maxUDPPayload: 4096)
    try scene.keep(name, [text(name, octets: 1536)])
    let message = try scene.reply(
      RawQuery {
        $0.type = 16; $0.records = [opt(payload: 4096)]
      })
    #expect(!message.header.tc)
    #expect(message.edns?.udpPayloadSize == 4096)
    #expect(
      try scene.reply(
        RawQuery {
          $0.type = 16; $0.records = [opt(payload: 1500)]
        }
      ).header.tc)
  }

  @Test func `a cached answer of exactly 512 octets is whole`() throws {
    for (extra, fits) in [(0, true), (1, false)] {
      let scene = try QueryPathScene()
      let rdata = [UInt8](repeating: 7, count: 512 - 12 - 17 - 4 - 12 + extra)
      let owner = try #require(DomainName(text: name))
      try scene.keep(name, [ResourceRecord(owner: owner, type: RecordType(65_280), ttl: 9, rdata: rdata)])
      let query = RawQuery { $0.type = 65_280 }
      guard case .reply(let octets) = scene.ask(query.octets) else { throw CancellationError() }
      #expect(octets.count == (fits ? 512 : 33))
      #expect(try Message.parse(octets).header.tc == !fits)
      // With an OPT record there is less room, unless the client takes more.
      #expect(
        try scene.reply(
          RawQuery {
            $0.type = 65_280; $0.records = [opt(payload: 512)]
          }
        ).header.tc)
      #expect(
        try !scene.reply(
          RawQuery {
            $0.type = 65_280; $0.records = [opt(payload: 524)]
          }
        ).header.tc)
    }
  }

  @Test(arguments: [3, 16]) func `each alias of a cached chain ages by its own TTL`(length: Int) throws {
    let scene = try QueryPathScene()
    let chain = (0..<length).map {
      alias($0 == 0 ? name : "c\($0).example.net", "c\($0 + 1).example.net", ttl: 100 + UInt32($0))
    }
    let records = chain + [address("c\(length).example.net", 1, ttl: 50)]
    try scene.keep(name, records)
    for elapsed in [0, 1, 30, 49] {
      let message = try scene.reply(RawQuery(), .tcp, now: Double(elapsed) + 0.5)
      #expect(message.answers.map(\.owner) == records.map(\.owner))
      #expect(message.answers.map(\.ttl) == records.map { $0.ttl - UInt32(elapsed) })
      #expect(!message.header.aa)
    }
  }

  @Test func `names in RDATA survive every spelling of the question`() throws {
    let scene = try QueryPathScene()
    let asked = DomainName(text: name)!
    let hosts = ["mx.www.example.com", "mx.example.com", "a.mx.example.net", "mx.example.net"]
      .map { DomainName(text: $0)! }
    let records = hosts.enumerated().map { index, host in
      ResourceRecord(owner: asked, type: .mx, ttl: 100 + UInt32(index), rdata: [0, 10] + host.octets)
    }
    let response = try #require(ComposedResponse(.noError, to: asked, answers: records))
    scene.keep(name, RecordType.mx.rawValue, life: EntryLife(lifetime: 100), response)
    for spelling in ["wWw.ExAmPlE.cOm", "WWW.EXAMPLE.COM", name] {
      let query = RawQuery {
        $0.type = 15; $0.name = RawQuery.name(spelling)
      }
      let message = try scene.reply(query, now: 30)
      #expect(message.answers.map(\.ttl) == [70, 71, 72, 73])
      #expect(message.answers.map { DomainName(octets: Array($0.rdata.dropFirst(2))) } == hosts)
    }
  }

  @Test func `an expired answer is not served`() throws {
    let scene = try QueryPathScene()
    scene.keep(
      name, life: EntryLife(lifetime: 60),
      try #require(ComposedResponse(.noError, to: DomainName(text: name)!, answers: [address(name, 1, ttl: 60)])))
    #expect(try scene.reply(RawQuery(), now: 59.9).answers.map(\.ttl) == [1])
    #expect(scene.ask(RawQuery().octets, now: 60) == .forward(0))
  }

  @Test func `a cached NXDOMAIN covers all types of its name, with the SOA record aged`() throws {
    let scene = try QueryPathScene()
    let nxdomain = try #require(
      ComposedResponse(
        .nxDomain, to: DomainName(text: name)!, answers: [], authorities: [startOfAuthority("example.com", ttl: 30)]))
    scene.keep(name, CacheKey.everyType, life: EntryLife(lifetime: 30), nxdomain)
    for type in [RecordType.a, .aaaa, .mx, .https, RecordType(666)] {
      let message = try scene.reply(name, type, now: 12)
      #expect(message.responseCode == .nxDomain)
      #expect(
        message.authorities
          == [startOfAuthority("example.com", ttl: 30)].map { record in
            var record = record
            record.ttl = 18
            return record
          })
      #expect(message.questions.first?.question.type == type)
      #expect(!message.header.aa)
    }
    #expect(scene.ask(RawQuery { $0.flags = 0 }.octets, now: 12) != .forward(0))
    // What is below is the resolver's to decide, and a name beside it is another one.
    #expect(scene.ask(RawQuery { $0.name = RawQuery.name("a.www.example.com") }.octets) == .forward(0))
    #expect(scene.ask(RawQuery { $0.name = RawQuery.name("ww.example.com") }.octets) == .forward(0))
    try scene.keep(name, [address(name, 1)])
    #expect(try scene.reply(name, .a, now: 12).answers.count == 1)
  }

  @Test func `cached answers are separate by type, DO, CD and route`() throws {
    let scene = try QueryPathScene(rules: [("routed.example", .route(4))])
    try scene.keep(name, [address(name, 1)])
    try scene.keep("routed.example", [address("routed.example", 1)])
    for query in [
      RawQuery { $0.type = 28 }, RawQuery { $0.records = [opt(flags: 0x8000)] }, RawQuery { $0.flags |= 0x10 },
    ] {
      #expect(scene.ask(query.octets) == .forward(0))
    }
    #expect(scene.ask(RawQuery { $0.name = RawQuery.name("routed.example") }.octets) == .forward(4))
    try scene.keep("routed.example", [address("routed.example", 2)], route: 4)
    #expect(try scene.reply("routed.example").answers.map { $0.rdata.last } == [2])
  }

  @Test func `an authenticated cached answer has AD for clients that understand it`() throws {
    let scene = try QueryPathScene()
    for isAuthenticated in [false, true] {
      for dnssecOK in [false, true] {
        var response = try #require(
          ComposedResponse(.noError, to: DomainName(text: name)!, answers: [address(name, 1)]))
        response.isAuthenticated = isAuthenticated
        scene.keep(name, dnssecOK: dnssecOK, response)
        for wantsAD in [false, true] {
          let message = try scene.reply(
            RawQuery {
              $0.flags |= wantsAD ? 0x20 : 0
              $0.records = dnssecOK ? [opt(flags: 0x8000)] : []
            })
          #expect(message.header.ad == (isAuthenticated && (wantsAD || dnssecOK)))
        }
      }
    }
  }

  @Test func `a cached answer carries its extended error`() throws {
    let scene = try QueryPathScene()
    var response = ComposedResponse(.noError)
    response.extendedError = .filtered
    scene.keep(name, 1, response)
    #expect(try scene.reply(RawQuery { $0.records = [opt()] }).extendedError == .filtered)
    #expect(try scene.reply(RawQuery()).edns == nil)
  }

  @Test func `without a cache no look-up is made`() throws {
    let scene = try QueryPathScene(cacheEnabled: false)
    try scene.keep(name, [address(name, 1)])
    #expect(scene.ask(RawQuery().octets) == .forward(0))
    #expect(try scene.reply(RawQuery { $0.flags = 0 }).responseCode == .refused)
  }

  @Test func `a cached answer over TCP has the idle timeout if the client asks for it`() throws {
    let scene = try QueryPathScene()
    try scene.keep(name, [address(name, 1)])
    let asking = RawQuery { $0.records = [opt(option(11))] }
    let keepalive = EDNS.Option(code: .tcpKeepalive, data: [0, UInt8(QueryPathScene.keepalive)])
    #expect(try scene.reply(asking, .tcp).edns?.options == [keepalive])
    #expect(try scene.reply(asking, .udp).edns?.options == [])
    #expect(try scene.reply(RawQuery { $0.records = [opt()] }, .tcp).edns?.options == [])
    // On refusals too.
    #expect(
      try scene.reply(
        RawQuery {
          $0.qclass = 3; $0.records = [opt(option(11))]
        }, .tcp
      ).edns?.option(.tcpKeepalive) != nil)
  }

  @Test func `cached answers and refusals do not allocate`() throws {
    guard AllocationTrap.isAvailable else { return }
    let scene = try QueryPathScene()
    try scene.keep(name, [address(name, 1), address(name, 2)])
    for query in [
      RawQuery(), RawQuery { $0.records = [opt(option(11), option(8, [0, 1, 24, 0, 192, 0, 2]))] },
      RawQuery { $0.name = RawQuery.name("miss.example.com") }, RawQuery { $0.name = RawQuery.name("localhost") },
      RawQuery { $0.qclass = 3 }, RawQuery { $0.type = 255 }, RawQuery { $0.name = [0xC0, 12] },
    ] {
      #expect(scene.allocations(for: query.octets) == .clean)
      #expect(scene.allocations(for: query.octets, .tcp) == .clean)
    }
  }
}

@Suite struct `A client that may not ask` {
  @Test func `a client that is not allowed gets REFUSED with EDE 18 for every query`() throws {
    let scene = try QueryPathScene()
    try scene.keep("www.example.com", [address("www.example.com", 1)])
    for client in ["192.0.2.1", "128.0.0.1", "2001:db8::1", "::2", "::ffff:192.0.2.1"] {
      for query in [
        RawQuery { $0.records = [opt()] },
        RawQuery {
          $0.records = [opt()]; $0.name = RawQuery.name("localhost")
        },
        RawQuery {
          $0.records = [opt()]; $0.type = 255
        },
        RawQuery {
          $0.records = [opt()]; $0.name = RawQuery.name("miss.example")
        },
      ] {
        let message = try scene.reply(query, from: client)
        #expect(message.responseCode == .refused)
        #expect(message.extendedError == .prohibited)
        #expect(message.answers.isEmpty)
      }
      #expect(try scene.reply(RawQuery(), from: client).edns == nil)
      // FORMERR reveals no more than REFUSED does.
      #expect(
        try scene.reply(
          RawQuery {
            $0.counts = [2, 0, 0, 0]; $0.trailer = [0] + words(1, 1)
          }, from: client
        ).responseCode == .refused)
      #expect(scene.ask(RawQuery { $0.flags |= 0x8000 }.octets, from: client) == .drop)
    }
    for client in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
      #expect(try scene.reply(RawQuery(), from: client).answers.count == 1)
    }
  }
}
