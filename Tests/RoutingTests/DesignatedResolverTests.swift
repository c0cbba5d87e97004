// DesignatedResolverTests.swift -- what `_dns.resolver.arpa` and the server's own name are answered with.

import DNSWire
import TestSupport
import Testing

@testable import Routing

@Suite struct `Discovery of encrypted listeners` {
  private let name = DomainName(text: "dns.example.com")!

  private func resolver(
    https: [UInt16] = [443], tls: [UInt16] = [853],
    _ addresses: [String] = ["192.0.2.53", "2001:db8::53", "192.0.2.54"]
  ) throws -> DesignatedResolver {
    try #require(
      DesignatedResolver(
        name: name, https: https, path: "/dns-query", tls: tls,
        addresses: addresses.map { IPAddress(text: $0)! }))
  }

  private func table(_ resolver: DesignatedResolver?, special: Bool = true, hosts: String = "") -> RouteTable {
    RouteTable(hosts: hosts, SpecialNamesSettings(special: special, portalNames: false, designated: resolver))
  }

  private func answer(_ table: RouteTable, _ type: RecordType = .svcb) throws -> LocalAnswer {
    guard case .local(let index) = table.decision(DomainName(text: "_DNS.Resolver.arpa")!, type) else {
      Issue.record("no local answer")
      throw CancellationError()
    }
    return table.localAnswers[Int(index)]
  }

  private func texts(_ answer: LocalAnswer) -> [String] { answer.records.map { RDATA.text($0.rdata, type: $0.type) } }

  @Test func `each listener is a record, DNS over HTTPS before DNS over TLS, with the addresses as hints`() throws {
    let answer = try answer(table(resolver()))
    let hints = "ipv4hint=192.0.2.53,192.0.2.54 ipv6hint=2001:db8::53"
    #expect(
      texts(answer) == [
        "1 dns.example.com. alpn=h2 port=443 \(hints) dohpath=/dns-query{?dns}",
        "2 dns.example.com. alpn=dot port=853 \(hints)",
      ])
    #expect(answer.records.allSatisfy { $0.ttl == 300 && $0.type == .svcb })
    #expect(answer.responseCode == .noError && answer.isAuthoritative && answer.soaOwner == nil)
    #expect(answer.additionals.map(\.type) == [.a, .aaaa, .a])
    #expect(answer.additionals.allSatisfy { $0.owner == name && $0.ttl == 300 })
  }

  @Test func `the RDATA is that of RFC 9460`() throws {
    let records = try resolver(tls: [], ["192.0.2.53"]).records
    #expect(
      records.map(\.rdata) == [
        words(1) + name.octets + words(1, 3) + [2] + Array("h2".utf8) + words(3, 2, 443) + words(4, 4) + [
          192, 0, 2, 53,
        ]
          + words(7, 16) + Array("/dns-query{?dns}".utf8)
      ])
  }

  @Test func `only listeners that exist are named`() throws {
    #expect(try texts(answer(table(resolver(https: [], [])))) == ["2 dns.example.com. alpn=dot port=853"])
    #expect(
      try texts(answer(table(resolver(https: [443, 8443], tls: [], [])))) == [
        "1 dns.example.com. alpn=h2 port=443 dohpath=/dns-query{?dns}",
        "1 dns.example.com. alpn=h2 port=8443 dohpath=/dns-query{?dns}",
      ])
    #expect(DesignatedResolver(name: name, https: [], path: "/", tls: [], addresses: []) == nil)
  }

  @Test func `wildcards are no hints`() throws {
    let resolver = try resolver(https: [], ["0.0.0.0", "::", "192.0.2.1"])
    #expect(resolver.addresses.map(\.description) == ["192.0.2.1"])
    #expect(try texts(answer(table(resolver))) == ["2 dns.example.com. alpn=dot port=853 ipv4hint=192.0.2.1"])
  }

  @Test func `the rest of resolver.arpa, and all of it without listeners, is NODATA`() throws {
    let table = table(try resolver())
    for type in [RecordType.a, .aaaa, .txt, .ptr] {
      #expect(table.ask("_dns.resolver.arpa", type) == .noData("resolver.arpa."))
    }
    for other in ["resolver.arpa", "x.resolver.arpa", "x._dns.resolver.arpa"] {
      #expect(table.ask(other, .svcb) == .noData("resolver.arpa."))
    }
    // SVCB and HTTPS have one decision.
    let other = try #require(try answer(table, .https).otherTypes)
    #expect(Outcome(table.localAnswers[Int(other)], asked: name) == .noData("resolver.arpa."))
    #expect(self.table(nil).ask("_dns.resolver.arpa", .svcb) == .noData("resolver.arpa."))
  }

  @Test func `the server's name has the same addresses, and without any it is an ordinary name`() throws {
    let table = table(try resolver())
    #expect(table.ask("DNS.example.com", .a) == .records(["192.0.2.53", "192.0.2.54"]))
    #expect(table.ask("dns.example.com", .aaaa) == .records(["2001:db8::53"]))
    #expect(table.ask("dns.example.com", .https) == .noData("QNAME"))
    #expect(table.ask("dns.example.com", .txt) == .route(0))
    #expect(table.ask("x.dns.example.com", .a) == .route(0))
    #expect(self.table(try resolver(["0.0.0.0"])).ask("dns.example.com", .a) == .route(0))
    #expect(self.table(try resolver(["192.0.2.1"])).ask("dns.example.com", .aaaa) == .noData("QNAME"))
  }

  @Test func `the hosts file decides about the server's name, and discovery needs no special names`() throws {
    #expect(
      table(try resolver(), hosts: "192.0.2.99 dns.example.com").ask("dns.example.com", .a) == .records(["192.0.2.99"]))
    let table = table(try resolver(), special: false)
    #expect(try answer(table).records.count == 2)
    #expect(table.ask("resolver.arpa", .svcb) == .route(0))
  }

  @Test func `an answer that would exceed 512 octets has no additional section`() throws {
    for count in 0...40 {
      let resolver = try resolver((0..<count).map { "192.0.2.\($0 + 1)" })
      let octets = resolver.additionals.count * (17 + 14) + resolver.records.reduce(0) { $0 + 12 + $1.rdata.count } + 36
      #expect(octets <= 501 || resolver.additionals.isEmpty)
      #expect(count > 8 || resolver.additionals.count == count, "\(count)")
    }
  }
}
