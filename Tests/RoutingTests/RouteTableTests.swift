// RouteTableTests.swift -- the precedence of rules, hosts file and special names, and hostile names.

import DNSWire
import Routing
import Testing

@Suite struct `A route table` {
  @Test func `a pattern selects a subtree, the names below, or one name`() {
    let table = RouteTable([
      ("corp.example", .route(1)), ("*.lan", .route(2)), ("=www.example", .route(3)),
    ])
    #expect(table.ask("corp.example") == .route(1))
    #expect(table.ask("A.B.Corp.Example") == .route(1))
    #expect(table.ask("notcorp.example") == .route(0))
    #expect(table.ask("lan") == .route(0))
    #expect(table.ask("x.lan") == .route(2))
    #expect(table.ask("y.x.lan") == .route(2))
    #expect(table.ask("www.example") == .route(3))
    #expect(table.ask("x.www.example") == .route(0))
    #expect(table.ask("example") == .route(0))
  }

  @Test func `the first rule that matches wins, not the longest`() {
    let table = RouteTable([
      ("=a.example", .route(1)), ("example other", .route(2)), ("a.example", .route(3)), ("*.", .route(4)),
    ])
    #expect(table.ask("a.example") == .route(1))
    #expect(table.ask("x.a.example") == .route(2))
    #expect(table.ask("x.other") == .route(2))
    #expect(table.ask("com") == .route(4))
    #expect(table.ask(".") == .route(0))
  }

  @Test func `patterns are parsed in the configuration's form`() {
    #expect(NamePattern(text: "Corp.example.") == .subtree(DomainName(text: "corp.example")!))
    #expect(NamePattern(text: "*.lan") == .below(DomainName(text: "lan")!))
    #expect(NamePattern(text: "=lan") == .exact(DomainName(text: "lan")!))
    #expect(NamePattern(text: ".") == .subtree(.root))
    #expect(NamePattern(text: "*.") == .below(.root))
    #expect(NamePattern(text: "=.") == .exact(.root))
    for text in ["", "*", "=", "a..b", "*.a..", String(repeating: "a", count: 64)] {
      #expect(NamePattern(text: text) == nil, "\(text)")
    }
  }

  @Test func `blocked names have the extended error for every type`() {
    let table = RouteTable([("ads.example", .nxDomain), ("*.internal.example", .refused)])
    for type in [RecordType.a, .aaaa, .https, .mx, .ptr] {
      #expect(table.ask("x.ads.example", type) == .blocked)
      #expect(table.ask("x.internal.example", type) == .refused)
    }
    #expect(table.ask("internal.example") == .route(0))
    #expect(table.localAnswers.map(\.responseCode) == [.nxDomain, .refused])
    #expect(table.localAnswers.map(\.soaOwner) == [.zone(DomainName(text: "ads.example")!), nil])
  }

  @Test func `pinned names have their addresses and nothing else`() {
    let addresses = ["192.0.2.2", "2001:db8::1", "192.0.2.1"].map { IPAddress(text: $0)! }
    let table = RouteTable([("pinned.example", .pinned(addresses)), ("v4.example", .pinned([addresses[0]]))])
    #expect(table.ask("pinned.example", .a) == .records(["192.0.2.2", "192.0.2.1"]))
    #expect(table.ask("x.pinned.example", .aaaa) == .records(["2001:db8::1"]))
    #expect(table.ask("pinned.example", .https) == .noData("pinned.example."))
    #expect(table.ask("v4.example", .aaaa) == .noData("v4.example."))
  }

  @Test func `a rule of some types leaves the others to the next rule`() {
    let name = NamePattern(text: "example")!
    let table = RouteTable(
      rules: [
        RouteRule(names: [name], types: [.aaaa, .service], action: .noData),
        RouteRule(names: [NamePattern(text: "*.example")!], types: [.pointer, .other], action: .refused),
        RouteRule(names: [name], action: .route(3)),
      ], hosts: HostsFile(), settings: SpecialNamesSettings())
    for type in [RecordType.aaaa, .https, .svcb] { #expect(table.ask("www.example", type) == .noData("example.")) }
    for type in [RecordType.ptr, .mx, .ns] { #expect(table.ask("www.example", type) == .refused) }
    #expect(table.ask("www.example", .a) == .route(3))
    #expect(table.ask("example", .mx) == .route(3))
    #expect(table.localAnswers.contains { $0.responseCode == .noError && $0.extendedError == .blocked })
    // No SOA record of the root.
    let everything = RouteTable([(".", .noData)])
    #expect(everything.ask("www.example", .aaaa) == .noData("QNAME"))
  }

  @Test func `a name of the hosts file exists, whichever of its types a rule decides`() {
    let table = RouteTable(
      rules: [RouteRule(names: [NamePattern(text: "=nas.lan")!], types: [.a], action: .noData)],
      hosts: try! HostsFile(octets: Array("2001:db8::1 nas.lan".utf8)), settings: SpecialNamesSettings())
    #expect(table.ask("nas.lan", .aaaa) == .records(["2001:db8::1"]))
    #expect(table.ask("nas.lan", .mx) == .noData("QNAME"))
  }

  @Test func `"default" ends the search, and decides as without rules`() {
    let table = RouteTable(
      [
        ("good.example example", .standard(0)), ("=ads.nas.example x.y.test", .nxDomain), ("terms.test", .standard(4)),
        (".", .nxDomain),
      ], hosts: "192.0.2.1 nas.example ads.nas.example", withLocalDNS)
    #expect(table.ask("www.good.example") == .route(0))
    #expect(table.ask("bad.org") == .blocked)
    #expect(table.ask("nas.example") == .records(["192.0.2.1"]))
    #expect(table.ask("nas.example", .mx) == .route(0))
    // Also where a later rule is deep enough to override the hosts file.
    #expect(table.ask("ads.nas.example") == .records(["192.0.2.1"]))
    #expect(table.ask("x.y.test") == .blocked)
    // With terms, the hosts file and special names still count.
    #expect(table.ask("terms.test") == .nxDomain("test."))
  }

  @Test func `a rule for everything does not override special names and the hosts file`() {
    let table = RouteTable([(".", .route(5))], hosts: "192.0.2.1 nas.example", withLocalDNS)
    #expect(table.ask("www.example") == .route(5))
    #expect(table.ask("www.example", .mx) == .route(5))
    #expect(table.ask("com", .ds) == .route(5))
    #expect(table.ask("localhost") == .records(["127.0.0.1"]))
    #expect(table.ask("x.test") == .nxDomain("test."))
    #expect(table.ask("nas") == .route(7))
    #expect(table.ask("1.2.3.4") == .nxDomain("QNAME"))
    #expect(table.ask("1.0.0.10.in-addr.arpa", .ptr) == .route(7))
    #expect(table.ask("captive.apple.com") == .route(8))
    #expect(table.ask("nas.example") == .records(["192.0.2.1"]))
    #expect(table.ask("nas.example", .mx) == .route(5))
  }

  @Test func `a rule for a special name or one below overrides it`() {
    let table = RouteTable(
      [
        (".", .route(5)), ("test", .route(1)), ("corp.local *.onion", .route(2)), ("=nas 4", .route(3)),
        ("com", .route(4)), ("=captive.apple.com", .route(6)), ("0.10.in-addr.arpa", .nxDomain),
      ], withLocalDNS)
    #expect(table.ask("x.test") == .route(1))
    #expect(table.ask("dc.corp.local") == .route(2))
    #expect(table.ask("printer.local") == .nxDomain("local."))
    #expect(table.ask("onion") == .nxDomain("onion."))
    #expect(table.ask("x.onion") == .route(2))
    #expect(table.ask("nas") == .route(3))
    #expect(table.ask("x.nas") == .route(5))
    #expect(table.ask("1.2.3.4") == .route(3))
    #expect(table.ask("1.2.3.5") == .nxDomain("QNAME"))
    #expect(table.ask("com") == .route(4))
    #expect(table.ask("captive.apple.com") == .route(6))
    #expect(table.ask("www.msftncsi.com") == .route(8))
    #expect(table.ask("1.1.0.10.in-addr.arpa", .ptr) == .blocked)
    #expect(table.ask("1.1.1.10.in-addr.arpa", .ptr) == .route(7))
  }

  @Test func `the hosts file overrides special names, and a rule of its depth overrides the hosts file`() {
    let hosts = """
      127.0.0.1 localhost
      10.0.0.1 nas.lan web.test
      10.0.0.2 db.lan
      """
    let table = RouteTable(
      [("*.lan", .nxDomain), ("=db.lan", .route(1))], hosts: hosts, withLocalDNS)
    #expect(table.ask("nas.lan") == .records(["10.0.0.1"]))
    #expect(table.ask("x.nas.lan") == .blocked)
    #expect(table.ask("nas.lan", .mx) == .noData("QNAME"))
    #expect(table.ask("db.lan") == .route(1))
    #expect(table.ask("web.test") == .records(["10.0.0.1"]))
    #expect(table.ask("web.test", .txt) == .noData("QNAME"))
    #expect(table.ask("localhost", .aaaa) == .noData("QNAME"))
    #expect(table.ask("1.0.0.10.in-addr.arpa", .ptr) == .records(["nas.lan."]))
    #expect(table.ask("1.0.0.10.in-addr.arpa", .a) == .route(7))
    #expect(table.ask("3.0.0.10.in-addr.arpa", .ptr) == .route(7))
    #expect(table.ask("1.0.0.127.in-addr.arpa", .ptr) == .records(["localhost."]))
  }

  @Test func `a name of 127 labels is looked up, in a table that knows all of them`() {
    let long = String(repeating: "a.", count: 127)
    let table = RouteTable([(long, .route(1)), (String(repeating: "a.", count: 126), .route(2))], withLocalDNS)
    #expect(table.ask(long) == .route(1))
    #expect(table.ask("b." + String(repeating: "a.", count: 126)) == .route(2))
    #expect(table.ask("b." + String(repeating: "a.", count: 125)) == .route(0))
    #expect(RouteTable([], withLocalDNS).ask(long) == .route(0))
    let wide = Array(repeating: String(repeating: "x", count: 63), count: 3).joined(separator: ".")
    #expect(RouteTable([(wide, .route(1))]).ask(wide) == .route(1))
  }

  @Test func `octets that are not one complete name take the default route`() {
    let table = RouteTable([("a", .route(1)), (".", .route(2))])
    let broken: [[UInt8]] = [
      [], [1], [1, 97], [2, 97, 0], [1, 97, 0, 0], [0, 0], [64, 0], [192, 12], [255] + Array(repeating: 0, count: 9),
      Array(repeating: 1, count: 255), Array(repeating: 1, count: 256),
    ]
    for octets in broken {
      // Room after the octets, so that a read beyond them would find something.
      let padded = octets + Array(repeating: 97, count: 300)
      let decision = padded.withUnsafeBufferPointer {
        table.find($0.baseAddress!, length: octets.count, type: 1).decision
      }
      #expect(decision == .route(0), "\(octets)")
    }
  }

  @Test func `labels of any octets and every length are distinguished`() {
    let labels = (1...63).map { length in
      [UInt8(length)] + (0..<length).map { UInt8(truncatingIfNeeded: $0 * 37 + length) }.map(asciiLowercase)
    }
    let names = labels.map { DomainName(octets: $0 + [2, 0, 255, 0])! }
    let rules = names.enumerated().map { RouteRule(names: [.exact($1)], action: .route(UInt16($0 + 1))) }
    let table = RouteTable(rules: rules, hosts: HostsFile(), settings: withoutLocalDNS)
    for (index, name) in names.enumerated() {
      #expect(table.ask(name, .a) == .route(UInt16(index + 1)))
      var other = name.octets
      other[Int(other[0])] ^= 0x80
      #expect(table.ask(DomainName(octets: other)!, .a) == .route(0))
    }
  }
}
