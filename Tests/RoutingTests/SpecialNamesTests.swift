// SpecialNamesTests.swift -- every special name, with and without LocalDNS.

import DNSWire
import Files
import Testing

@testable import Routing

private let ipv6Loopback = "1." + String(repeating: "0.", count: 31) + "ip6.arpa"
private let ipv6Unspecified = String(repeating: "0.", count: 32) + "ip6.arpa"

/// Names with the same answer on every network.
private let answeredHere: [(String, RecordType, Outcome)] = [
  // RFC 6761
  ("localhost", .a, .records(["127.0.0.1"])), ("localhost", .aaaa, .records(["::1"])),
  ("LocalHost", .a, .records(["127.0.0.1"])), ("a.b.localhost", .a, .records(["127.0.0.1"])),
  ("x.localhost", .aaaa, .records(["::1"])), ("localhost", .mx, .noData("localhost.")),
  ("x.localhost", .https, .noData("localhost.")), ("localhost", .ptr, .noData("localhost.")),
  ("invalid", .a, .nxDomain("invalid.")), ("x.invalid", .txt, .nxDomain("invalid.")),
  ("test", .a, .nxDomain("test.")), ("www.test", .aaaa, .nxDomain("test.")),
  // RFC 7686, 9476, 9665, 9462
  ("onion", .a, .nxDomain("onion.")), ("x.onion", .a, .nxDomain("onion.")), ("a.alt", .a, .nxDomain("alt.")),
  ("service.arpa", .a, .nxDomain("service.arpa.")), ("_dnssd.service.arpa", .ptr, .nxDomain("service.arpa.")),
  ("resolver.arpa", .a, .noData("resolver.arpa.")), ("_dns.resolver.arpa", .svcb, .noData("resolver.arpa.")),
  // RFC 6762
  ("local", .a, .nxDomain("local.")), ("printer.local", .a, .nxDomain("local.")),
  ("_ipp._tcp.local", .ptr, .nxDomain("local.")),
  ("254.169.in-addr.arpa", .ptr, .noData("254.169.in-addr.arpa.")),
  ("1.1.254.169.in-addr.arpa", .ptr, .nxDomain("254.169.in-addr.arpa.")),
  ("1.8.e.f.ip6.arpa", .ptr, .nxDomain("8.e.f.ip6.arpa.")), ("1.9.e.f.ip6.arpa", .ptr, .nxDomain("9.e.f.ip6.arpa.")),
  ("1.a.e.f.ip6.arpa", .ptr, .nxDomain("a.e.f.ip6.arpa.")), ("1.b.e.f.ip6.arpa", .ptr, .nxDomain("b.e.f.ip6.arpa.")),
  // RFC 6303
  ("1.0.0.127.in-addr.arpa", .ptr, .records(["localhost."])),
  ("1.0.0.127.in-addr.arpa", .a, .noData("127.in-addr.arpa.")),
  ("0.0.127.in-addr.arpa", .ptr, .noData("127.in-addr.arpa.")), ("127.in-addr.arpa", .ns, .noData("127.in-addr.arpa.")),
  ("2.0.0.127.in-addr.arpa", .ptr, .nxDomain("127.in-addr.arpa.")),
  ("5.127.in-addr.arpa", .ptr, .nxDomain("127.in-addr.arpa.")),
  ("x.1.0.0.127.in-addr.arpa", .ptr, .nxDomain("127.in-addr.arpa.")),
  (ipv6Loopback, .ptr, .records(["localhost."])), (ipv6Loopback, .aaaa, .noData(ipv6Loopback + ".")),
  (ipv6Unspecified, .ptr, .noData(ipv6Unspecified + ".")),
  ("4.3.2.0.in-addr.arpa", .ptr, .nxDomain("0.in-addr.arpa.")),
  ("255.255.255.255.in-addr.arpa", .ptr, .noData("255.255.255.255.in-addr.arpa.")),
  ("1.2.0.192.in-addr.arpa", .ptr, .nxDomain("2.0.192.in-addr.arpa.")),
  ("1.100.51.198.in-addr.arpa", .ptr, .nxDomain("100.51.198.in-addr.arpa.")),
  ("1.113.0.203.in-addr.arpa", .ptr, .nxDomain("113.0.203.in-addr.arpa.")),
  ("1.8.b.d.0.1.0.0.2.ip6.arpa", .ptr, .nxDomain("8.b.d.0.1.0.0.2.ip6.arpa.")),
  ("1.0.f.f.f.3.ip6.arpa", .ptr, .nxDomain("0.f.f.f.3.ip6.arpa.")),
  // Addresses in place of names, and impossible top-level domains
  ("1.2.3.4", .a, .nxDomain("QNAME")), ("example.123", .mx, .nxDomain("QNAME")), ("7", .a, .nxDomain("QNAME")),
  ("2001:db8::1", .aaaa, .nxDomain("QNAME")), ("::", .a, .nxDomain("QNAME")),
  ("::ffff:192.0.2.1", .a, .nxDomain("QNAME")),
  // The browsers' canary
  ("use-application-dns.net", .a, .nxDomain("use-application-dns.net.")),
]

/// Names of the network.
private let ofTheNetwork: [(String, RecordType)] =
  [
    ("home.arpa", .a), ("nas.home.arpa", .aaaa), ("internal", .a), ("metadata.google.internal", .a),
    ("x.internal", .mx), ("1.0.0.10.in-addr.arpa", .ptr), ("10.in-addr.arpa", .soa),
    ("1.0.168.192.in-addr.arpa", .ptr), ("1.0.0.d.f.ip6.arpa", .ptr), ("nas", .a), ("nas", .aaaa), ("nas", .https),
    ("nas", .svcb), ("com", .a), ("com", .https), ("x.lan", .a), ("lan", .mx), ("a.b.home", .txt), ("dc.corp", .srv),
    ("wiki.intranet", .a), ("x.private", .https), ("box.localdomain", .a), ("x.localhost.localdomain", .a),
  ]
  + (16...31).map { ("1.1.\($0).172.in-addr.arpa", .ptr) } + (64...127).map { ("1.1.\($0).100.in-addr.arpa", .ptr) }

/// Names that look special and are not.
private let ordinary: [(String, RecordType)] = [
  (".", .ns), (".", .a), ("com", .ds), ("com", .ns), ("com", .soa), ("org", .txt), ("example.com", .a),
  ("1.1.15.172.in-addr.arpa", .ptr), ("1.1.32.172.in-addr.arpa", .ptr), ("1.1.63.100.in-addr.arpa", .ptr),
  ("1.1.128.100.in-addr.arpa", .ptr), ("8.8.8.8.in-addr.arpa", .ptr), ("arpa", .ns), ("in-addr.arpa", .soa),
  ("1.c.f.ip6.arpa", .ptr), ("1.c.e.f.ip6.arpa", .ptr), ("localhost.example", .a), ("mytest", .ns), ("test.com", .a),
  ("4me.com", .a), ("x.4a", .a), ("notlocal", .mx), ("www.use-application-dns.org", .a), ("1.2.3.4.com", .a),
  ("arpa.homes", .a), ("captive.apple.com.example", .a),
]

@Suite struct `Special names` {
  private func settings(_ network: UInt16?) -> SpecialNamesSettings {
    SpecialNamesSettings(networkRoute: network, portalRoute: network.map { $0 + 1 })
  }

  @Test(arguments: [nil, 7] as [UInt16?])
  func `special-use names are answered locally`(network: UInt16?) {
    let table = RouteTable([], settings(network))
    for (name, type, expected) in answeredHere { #expect(table.ask(name, type) == expected, "\(name) \(type)") }
  }

  @Test func `names of the network go to LocalDNS`() {
    let table = RouteTable([], settings(7))
    for (name, type) in ofTheNetwork { #expect(table.ask(name, type) == .route(7), "\(name) \(type)") }
  }

  @Test func `names of the network are NXDOMAIN without LocalDNS`() {
    let table = RouteTable([], settings(nil))
    // Never with the root's SOA record: a resolver that forwards to us would apply it to the whole top-level domain.
    for (name, type) in ofTheNetwork { #expect(table.ask(name, type) == .nxDomain("QNAME"), "\(name) \(type)") }
  }

  @Test(arguments: [nil, 7] as [UInt16?])
  func `other names are ordinary questions`(network: UInt16?) {
    let table = RouteTable([], settings(network))
    for (name, type) in ordinary { #expect(table.ask(name, type) == .route(0), "\(name) \(type)") }
  }

  @Test func `ipv4only.arpa goes to LocalDNS, and has its two records without it`() {
    #expect(RouteTable([], withLocalDNS).ask("ipv4only.arpa", .aaaa) == .route(7))
    let table = RouteTable([], withoutLocalDNS)
    #expect(table.ask("ipv4only.arpa", .a) == .records(["192.0.0.170", "192.0.0.171"]))
    #expect(table.ask("ipv4only.arpa", .aaaa) == .noData("ipv4only.arpa."))
    #expect(table.ask("x.ipv4only.arpa", .a) == .nxDomain("QNAME"))
  }

  @Test func `only captive portal names go to the portal route`() {
    let table = RouteTable([], withLocalDNS)
    for name in PortalNames.all {
      #expect(table.ask(name, .a) == .route(8))
      #expect(table.ask(name, .https) == .route(8))
      #expect(table.ask("x." + name.text, .a) == .route(0))
      #expect(table.ask(name.parent!, .a) == .route(0))
    }
    var settings = withLocalDNS
    settings.portalNames = false
    #expect(RouteTable([], settings).ask("captive.apple.com", .a) == .route(0))
    #expect(RouteTable([], withoutLocalDNS).ask("captive.apple.com", .a) == .route(0))
  }

  @Test func `names of routers' own pages, and those below, go to LocalDNS first`() {
    var settings = withLocalDNS
    settings.routerRoute = 9
    for settings in [settings, SpecialNamesSettings(special: false, networkRoute: 7, portalRoute: 8, routerRoute: 9)] {
      let table = RouteTable([("=fritz.box", .nxDomain), (".", .route(3))], settings)
      for name in RouterNames.all where name.text != "fritz.box." {
        #expect(table.ask(name, .a) == .route(9), "\(name)")
        #expect(table.ask(name, .https) == .route(9))
        #expect(table.ask("www." + name.text, .aaaa) == .route(9))
        if name.labelCount > 2 { #expect(table.ask(name.parent!, .a) == .route(3)) }
      }
      #expect(table.ask("fritz.box") == .blocked)
      #expect(table.ask("nas.fritz.box") == .route(9))
    }
    settings.portalNames = false
    #expect(RouteTable([], settings).ask("router.asus.com") == .route(0))
    #expect(RouteTable([], withoutLocalDNS).ask("router.asus.com") == .route(0))
  }

  @Test func `a router's domain as the network's search domain keeps its order`() {
    let settings = SpecialNamesSettings(
      searchDomains: [DomainName(text: "fritz.box")!], searchRoute: 4, networkRoute: 7, portalRoute: 8, routerRoute: 9)
    #expect(RouteTable([], settings).ask("nas.fritz.box") == .route(9))
  }

  @Test func `the document lists every name of a router`() throws {
    let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/")
    let text = String(
      decoding: try WholeFile.read("\(root)/docs/configuration.md", limit: 1 << 20), as: UTF8.self)
    for name in RouterNames.all { #expect(text.contains("`\(name.text.dropLast())`"), "\(name)") }
  }

  @Test func `without special names, portal names are still switched separately`() {
    let table = RouteTable(
      [],
      SpecialNamesSettings(
        special: false, searchDomains: [DomainName(text: "lan")!], searchRoute: 9, networkRoute: 7, portalRoute: 8))
    for (name, type, _) in answeredHere { #expect(table.ask(name, type) == .route(0), "\(name) \(type)") }
    for (name, type) in ofTheNetwork { #expect(table.ask(name, type) == .route(0), "\(name) \(type)") }
    #expect(table.ask("x.lan", .a) == .route(0))
    #expect(table.ask("captive.apple.com", .a) == .route(8))
  }

  @Test func `answers for local zones have AA, answers of rules and for the root do not`() {
    let table = RouteTable([("blocked.example", .nxDomain)], withoutLocalDNS)
    func answer(_ name: String, _ type: RecordType) -> LocalAnswer? {
      guard case .local(let index) = table.decision(DomainName(text: name)!, type) else { return nil }
      return table.localAnswers[Int(index)]
    }
    #expect(answer("localhost", .a)?.isAuthoritative == true)
    #expect(answer("x.test", .a)?.isAuthoritative == true)
    #expect(answer("1.2.3.4", .a)?.isAuthoritative == false)
    #expect(answer("blocked.example", .a)?.isAuthoritative == false)
    #expect(answer("x.test", .a)?.extendedError == nil)
    #expect(answer("blocked.example", .a)?.extendedError == .blocked)
  }
}
