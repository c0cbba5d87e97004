// SearchDomainTests.swift -- a network's search domains keep no public name from the providers.

import DNSWire
import Routing
import Testing

@Suite struct `Search domains` {
  private func table(
    _ domains: String..., rules: [(String, RouteAction)] = [], searchRoute: UInt16? = 9, networkRoute: UInt16? = 7
  ) -> RouteTable {
    RouteTable(
      rules,
      SpecialNamesSettings(
        searchDomains: domains.map { DomainName(text: $0)! }, searchRoute: searchRoute, networkRoute: networkRoute,
        portalRoute: 8))
  }

  @Test(arguments: ["com", "Com", "com.cn", "co.uk", "org", "zuerich", "xn--p1ai"])
  func `a top-level domain or public suffix as a search domain has no effect`(text: String) {
    #expect(SearchDomain(DomainName(text: text)!).effect == .publicSuffix)
    #expect(table(text).ask("www.example.\(text)") == .route(0))
    #expect(table(text).ask("\(text)", .mx) == .route(0))
  }

  @Test func `names below other search domains are shared between providers and network`() {
    let table = table("Corp.Example", "corp.example.")
    for name in ["corp.example", "web.corp.example", "a.b.corp.example"] {
      for type in [RecordType.a, .https, .mx] { #expect(table.ask(name, type) == .route(9)) }
    }
    #expect(table.ask("www.example") == .route(0))
    #expect(table.ask("notcorp.example") == .route(0))
  }

  @Test(arguments: [
    "corp.local", "local", "lab.test", "site.internal", "a.lan", "x.home", "ad.corp", "x.intranet", "x.private",
    "x.localdomain", "x.home.arpa",
  ])
  func `names with a top-level label that does not exist belong to the network alone`(text: String) {
    #expect(SearchDomain(DomainName(text: text)!).effect == .networkOnly)
    #expect(table(text).ask("web.\(text)") == .route(7))
    #expect(table(text).ask("web.\(text)", .txt) == .route(7))
  }

  @Test(arguments: ["localhost", "x.onion", "invalid", "10.in-addr.arpa", "arpa", "service.arpa", "foo.123"])
  func `a special zone as a search domain stays special`(text: String) {
    #expect(SearchDomain(DomainName(text: text)!).effect == .special)
    let (with, without) = (table(text), table())
    for name in [text, "web.\(text)"] { #expect(with.ask(name) == without.ask(name)) }
  }

  @Test func `the root and duplicates among search domains are ignored`() {
    let names = [".", "a.example", "A.example", "lan"].map { DomainName(text: $0)! }
    #expect(SearchDomain.judged(names).map(\.name.text) == ["a.example.", "lan."])
  }

  @Test func `search domains override no rule of the administrator`() {
    let rules: [(String, RouteAction)] = [("example", .route(3)), ("local", .route(4)), ("=x.org", .nxDomain)]
    let table = table("corp.example", "ad.local", "x.org", rules: rules)
    #expect(table.ask("web.corp.example") == .route(3))
    #expect(table.ask("web.ad.local") == .route(4))
    #expect(table.ask("x.org") == .blocked)
    #expect(table.ask("www.x.org") == .route(9))
    #expect(self.table("corp.example", rules: [(".", .route(3))]).ask("web.corp.example") == .route(3))
    // Which would not be asked for them without the search domain either.
    #expect(self.table("ad.local", rules: [(".", .route(3))]).ask("web.ad.local") == .route(7))
  }

  @Test func `search domains do not affect captive portal names`() {
    let table = table("apple.com", "captive.apple.com")
    #expect(table.ask("captive.apple.com") == .route(8))
    #expect(table.ask("www.apple.com") == .route(9))
  }

  @Test func `search domains have no effect if they are ignored, or without LocalDNS`() {
    for table in [
      table("corp.example", "ad.local", searchRoute: nil), table("corp.example", "ad.local", networkRoute: nil),
    ] {
      #expect(table.ask("web.corp.example") == .route(0))
      #expect(table.ask("web.ad.local") == .nxDomain("local."))
    }
  }

  @Test func `names of local zones are distinguished from public ones`() {
    for text in ["nas", "router.lan", "x.localhost", "a.internal", "1.0.0.10.in-addr.arpa", "1.2.3.4", "x.local"] {
      #expect(LocalZones.contains(DomainName(text: text)!), "\(text)")
    }
    for text in [".", "www.example.com", "lan.example", "1.1.1.1.in-addr.arpa"] {
      #expect(!LocalZones.contains(DomainName(text: text)!), "\(text)")
    }
  }
}
