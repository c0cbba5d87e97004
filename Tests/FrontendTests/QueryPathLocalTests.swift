// QueryPathLocalTests.swift -- answers that are composed at start: rules, the hosts file, QTYPE ANY.

import DNSWire
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `A local answer` {
  private func discovery(_ type: RecordType = .svcb, _ records: [[UInt8]] = [opt()]) -> RawQuery {
    RawQuery {
      ($0.name, $0.type, $0.records) = (RawQuery.name("_dns.resolver.arpa"), type.rawValue, records)
    }
  }

  private func designated(addresses: Int) -> DesignatedResolver? {
    DesignatedResolver(
      name: DomainName(text: "dns.example.com")!, https: [443], path: "/dns-query", tls: [853],
      addresses: (0..<addresses).map { IPAddress(octets: [192, 0, 2, UInt8($0)])! })
  }

  @Test func `discovery has the encrypted listeners, and their addresses as additional records before OPT`() throws {
    let scene = try QueryPathScene(designated: designated(addresses: 2))
    for records in [[opt()], []] as [[[UInt8]]] {
      let message = try scene.reply(discovery(.svcb, records))
      #expect(message.answers.map(\.type) == [.svcb, .svcb])
      #expect(message.answers.map(\.owner.text) == ["_dns.resolver.arpa.", "_dns.resolver.arpa."])
      #expect(message.additionals.map(\.owner.text) == ["dns.example.com.", "dns.example.com."])
      #expect(message.additionals.map(\.rdata) == [[192, 0, 2, 0], [192, 0, 2, 1]])
      #expect((message.edns != nil) == !records.isEmpty)
      #expect(message.header.aa && !message.header.tc && message.authorities.isEmpty)
    }
    scene.path.options = StreamOptions(keepalive: -1, isPadded: true)
    let padded = try scene.reply(discovery(.svcb, [opt(option(12))]), .dot)
    #expect(padded.additionals.count == 2 && padded.edns?.option(.padding) != nil)
  }

  @Test func `a truncated discovery has no additional records, and one for HTTPS is NODATA`() throws {
    let scene = try QueryPathScene(designated: designated(addresses: 200))
    let cut = try scene.reply(discovery())
    #expect(cut.header.tc && cut.answers.isEmpty && cut.additionals.isEmpty && cut.edns != nil)
    let whole = try scene.reply(discovery(), .tcp)
    #expect(whole.answers.count == 2 && whole.additionals.isEmpty)
    let other = try scene.reply(discovery(.https))
    #expect(other.responseCode == .noError && other.answers.isEmpty && other.additionals.isEmpty)
    #expect(other.authorities.map(\.owner.text) == ["resolver.arpa."])
  }

  @Test(.enabled(if: AllocationTrap.isAvailable)) func `discovery allocates nothing`() throws {
    let scene = try QueryPathScene(designated: designated(addresses: 2))
    #expect(scene.allocations(for: discovery().octets) == .clean)
  }

  @Test func `QTYPE ANY is answered with HINFO for any name, with and without RD`() throws {
    let scene = try QueryPathScene()
    for (name, flags) in [("www.example.com", 0x0100), ("", 0x0100), ("deep.below.example.org", 0)]
      as [(String, UInt16)]
    {
      let message = try scene.reply(
        RawQuery {
          $0.name = RawQuery.name(name); $0.type = 255; $0.flags = flags
        })
      let owner = try #require(DomainName(octets: RawQuery.name(name)))
      let rdata = [7] + Array("RFC8482".utf8) + [0]
      #expect(message.responseCode == .noError)
      #expect(message.answers.map(\.owner) == [owner])
      #expect(message.answers.map(\.type) == [.hinfo])
      #expect(message.answers.map(\.rdata) == [rdata])
      #expect(!message.header.aa)
    }
  }

  @Test(arguments: [
    "localhost", "a.localhost", "a.longer.localhost", "invalid", "x.invalid", "www.much.longer.invalid",
    "blocked.invalid",
  ])
  func `a local negative answer has the zone's SOA record behind a question of any length`(name: String) throws {
    let scene = try QueryPathScene(rules: [("blocked.invalid", .nxDomain)])
    let message = try scene.reply(name, .mx)
    let soa = try #require(message.authorities.first)
    let asked = try #require(DomainName(text: name))
    #expect(message.authorities.count == 1 && soa.type == .soa && asked.isAtOrBelow(soa.owner) && !soa.owner.isRoot)
    // The zone's own name is at the end of these, and must not be where a pointer from another question leads.
    let names = ["localhost", "nobody.invalid"].flatMap { DomainName(text: $0)!.octets }
    #expect(soa.rdata.count == names.count + 20 && soa.rdata.starts(with: names))
  }

  @Test func `a rule's answer takes precedence over the cache`() throws {
    let scene = try QueryPathScene(
      rules: [("blocked.example", .nxDomain), ("refused.example", .refused), ("empty.example", .noData)])
    let empty = try scene.reply(
      RawQuery {
        $0.name = RawQuery.name("empty.example"); $0.records = [opt()]
      })
    #expect(empty.responseCode == .noError && empty.answers.isEmpty && !empty.header.aa)
    #expect(empty.extendedError == .blocked && empty.authorities.map(\.type) == [.soa])
    for name in ["blocked.example", "a.blocked.example", "refused.example"] { try scene.keep(name, [address(name, 1)]) }
    let blocked = try scene.reply(
      RawQuery {
        $0.name = RawQuery.name("A.Blocked.Example"); $0.records = [opt()]
      })
    #expect(blocked.responseCode == .nxDomain)
    #expect(blocked.extendedError == .blocked)
    #expect(blocked.authorities.map(\.owner.text) == ["blocked.example."])
    #expect(!blocked.header.aa)
    let refused = try scene.reply(
      RawQuery {
        $0.name = RawQuery.name("refused.example"); $0.records = [opt()]
      })
    #expect(refused.responseCode == .refused)
    #expect(refused.extendedError == .blocked)
    #expect(refused.authorities.isEmpty)
  }

  @Test func `a pinned name has the addresses of the type, or NODATA`() throws {
    let addresses = try ["192.0.2.1", "2001:db8::1", "192.0.2.2"].map { try #require(IPAddress(text: $0)) }
    let scene = try QueryPathScene(rules: [("pinned.example", .pinned(addresses))])
    #expect(try scene.reply("pinned.example", .a).answers.map(\.rdata) == [addresses[0].octets, addresses[2].octets])
    #expect(try scene.reply("x.pinned.example", .aaaa).answers.map(\.rdata) == [addresses[1].octets])
    for type in [RecordType.mx, .https, .txt] {
      let message = try scene.reply("pinned.example", type)
      #expect(message.responseCode == .noError)
      #expect(message.answers.isEmpty)
      #expect(message.authorities.map(\.type) == [.soa])
    }
    #expect(try scene.reply("pinned.example").header.aa)
  }

  @Test func `the hosts file answers addresses and reverse names`() throws {
    let scene = try QueryPathScene(hosts: "192.0.2.7 nas.example nas\n2001:db8::7 nas.example\n0.0.0.0 ads.example\n")
    #expect(try scene.reply("NAS.example").answers.map(\.rdata) == [[192, 0, 2, 7]])
    #expect(try scene.reply("nas.example", .aaaa).answers.count == 1)
    #expect(try scene.reply("nas").answers.map(\.rdata) == [[192, 0, 2, 7]])
    #expect(try scene.reply("ads.example").answers.map(\.rdata) == [[0, 0, 0, 0]])
    #expect(try scene.reply("7.2.0.192.in-addr.arpa", .ptr).answers.map(\.rdata) == [RawQuery.name("nas.example")])
    #expect(try scene.reply("nas.example", .https).authorities.map(\.owner.text) == ["nas.example."])
  }

  @Test(arguments: ["x", "X", "lan.x", "a.b.x", "x.x", "lan.y", "xx", "=exact.x", "*.below.x"])
  func `a local answer names the zone of its SOA record for any zone`(pattern: String) throws {
    let scene = try QueryPathScene(rules: [(pattern, .nxDomain)])
    let zone =
      pattern.hasPrefix("*.")
      ? String(pattern.dropFirst(2)) : pattern.hasPrefix("=") ? String(pattern.dropFirst()) : pattern
    for name in pattern.hasPrefix("=") ? [zone] : ["host.\(zone)", "deep.below.host.\(zone)"] {
      let message = try scene.reply(name, .a)
      #expect(message.responseCode == .nxDomain)
      #expect(message.authorities.map(\.owner) == [try #require(DomainName(text: zone))])
    }
  }

  @Test func `a local answer is truncated if it does not fit, and whole over TCP`() throws {
    let addresses = try (0..<60).map { try #require(IPAddress(text: "192.0.2.\($0)")) }
    let scene = try QueryPathScene(rules: [("many.example", .pinned(addresses))])
    let query = RawQuery { $0.name = RawQuery.name("many.example") }
    let cut = try scene.reply(query)
    // 30 octets of header and question, 16 of each record, within 512.
    #expect(cut.header.tc && cut.answers.map(\.rdata) == addresses[..<30].map(\.octets))
    #expect(try scene.reply(query, .tcp).answers.map(\.rdata) == addresses.map(\.octets))
    #expect(
      try scene.reply(
        RawQuery {
          $0.name = query.name; $0.records = [opt()]
        }
      ).answers.count == 60)
  }
}
