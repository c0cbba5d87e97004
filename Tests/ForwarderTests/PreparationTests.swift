// PreparationTests.swift -- what stays what it was from one configuration to the next: numbers, terms, fixed settings.

import Configuration
import DNSWire
import EventLoop
import Glibc
import ListStore
import Logging
import MessageCache
import Persistence
import Refresh
import Routing
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `The next configuration` {
  private let surroundings = Preparation.Surroundings.quiet

  private func configuration(_ text: String) throws -> Configuration {
    let names = "[names]\nhosts_file = \"\"\n"
    return try Configuration.parse(text: text + names, fileName: "", environment: { _ in nil }).configuration
  }

  private func preparation(_ text: String, after old: Preparation? = nil) throws -> Preparation {
    try Preparation(configuration(text), old?.numbers ?? ServiceNumbers(), surroundings)
  }

  private func rule(_ names: String, _ use: String = "localdns", _ more: String = "") -> String {
    "[[rule]]\nnames = [\"\(names)\"]\nuse = \"\(use)\"\n\(more)\n"
  }

  private func number(_ text: String, _ preparation: Preparation) -> UInt16? {
    let decision = name(text).octets.withUnsafeBufferPointer {
      preparation.plan.table.find($0.baseAddress!, length: $0.count, type: 1).decision
    }
    guard case .route(let number) = decision else { return nil }
    #expect(!preparation.plan.routes[Int(number)].isUnused)
    return number
  }

  @Test func `a reload keeps the number of a rule that moves, and gives a new rule another`() throws {
    let server = "servers = [\"192.0.2.53\"]"
    let first = try preparation(rule("a.example", "localdns", server) + rule("b.example", "alidns"))
    #expect((number("a.example", first), number("b.example", first)) == (6, 7))
    let second = try preparation(rule("c.example") + rule("b.example", "alidns"), after: first)
    #expect((number("c.example", second), number("b.example", second)) == (8, 7))
    #expect(number("a.example", second) == Route.Number.standard)
    #expect(second.plan.routes[6].isUnused)
    #expect(second.numbers.routes.retired == [6])
    #expect(CacheMeanings(first).routes[7] == CacheMeanings(second).routes[7])
    #expect(CacheMeanings(first).routes[6] != CacheMeanings(second).routes[6])
  }

  @Test func `rules with the same route share a number, which a rule with changed bounds retains`()
    throws
  {
    let first = try preparation(rule("a.example", "alidns") + rule("b.example", "alidns", "stale = \"off\""))
    #expect((number("a.example", first), number("b.example", first)) == (6, 7))
    let second = try preparation(
      rule("b.example", "alidns", "max_ttl = \"60s\"") + rule("a.example", "alidns") + rule("c.example", "alidns"),
      after: first)
    #expect(["a.example", "b.example", "c.example"].map { number($0, second) } == [6, 7, 6])
    let terms = try #require(RevisedTerms(from: first, to: second))
    #expect(terms.routes[7]?.longest == 60)
    #expect(terms.routes[6] == RevisedTerms(from: second, to: first)?.routes[6])
  }

  @Test func `a reload without stricter terms does not touch the cache`() throws {
    let first = try preparation(rule("a.example"))
    #expect(RevisedTerms(from: first, to: try preparation(rule("a.example"), after: first)) == nil)
    #expect(
      RevisedTerms(from: first, to: try preparation(rule("a.example") + rule("b.example", "alidns"), after: first))
        == nil)
    let gone = try preparation("", after: first)
    let terms = try #require(RevisedTerms(from: first, to: gone))
    #expect(terms.routes.count == 6 || terms.routes[6] == nil)
    #expect(terms.routes[..<5].allSatisfy { $0 != nil })
  }

  @Test func `switching rebind protection on removes private addresses and refetches the network's answers`() throws {
    let first = try preparation(rule("a.example"))
    let second = try Preparation(
      Configuration.parse(
        text: rule("a.example") + "[names]\nhosts_file = \"\"\nrebind_protection = true", fileName: "",
        environment: { _ in nil }
      ).configuration, first.numbers, surroundings)
    let terms = try #require(RevisedTerms(from: first, to: second))
    #expect(terms.routes[0] == nil)
    // Names of the network, and those that a rule sends to its resolvers, may have private addresses.
    #expect(terms.routes[1] != nil && terms.routes[6] != nil)
  }

  @Test func `a reload recognises a provider by name and kind, and forgets a removed one`() throws {
    func providers(_ names: String...) -> String {
      names.map { "[[provider]]\nname = \"\($0)\"\nkind = \"doh\"\nurl = \"https://192.0.2.1/dns-query\"\n" }.joined()
    }
    let first = try preparation(providers("a", "b", "c"))
    let second = try preparation(providers("c", "d", "a"), after: first)
    #expect(second.providerNumbers == [2, 3, 0])
    #expect(RevisedTerms(from: first, to: second)?.lostSources == [EntrySource.provider(1).number])
    #expect(CacheMeanings(second).sources[EntrySource.provider(2).number]?.hasPrefix("c ") == true)
  }

  @Test func `a reload retains keys that need a restart, and names them`() throws {
    let running = try configuration("")
    var next = try configuration(
      """
      state_directory = "/elsewhere"
      [listen]
      addresses = ["127.0.0.1:5300"]
      workers = 7
      allow = ["10.0.0.0/8"]
      max_udp_payload = 512
      tcp_connections = 1
      tcp_per_client = 1
      tcp_idle = "1s"
      max_in_flight = 1
      [encrypted]
      dot = ["127.0.0.1:5353"]
      doh = ["127.0.0.1:5354"]
      doh_plain = ["127.0.0.1:5355"]
      certificate_file = "/tls/chain.pem"
      key_file = "/tls/key.pem"
      connections = 1
      per_client = 1
      idle = "1s"
      json = true
      [cache]
      enabled = false
      max_bytes = "1MiB"
      max_entries = 1
      persist = "/elsewhere/cache"
      max_ttl = "7s"
      [control]
      socket = "/elsewhere/socket"
      group = "adm"
      [web]
      address = "127.0.0.1:9353"

      """)
    let wanted = next
    #expect(
      next.keepFixed(of: running) == [
        "state_directory", "listen.addresses", "listen.workers", "listen.max_udp_payload", "listen.tcp_connections",
        "listen.tcp_per_client", "listen.tcp_idle", "listen.max_in_flight", "encrypted.dot", "encrypted.doh",
        "encrypted.doh_plain", "encrypted.connections", "encrypted.per_client", "encrypted.idle", "cache.enabled",
        "cache.max_bytes", "cache.max_entries", "cache.persist", "control.socket", "control.group", "web.address",
      ])
    #expect((next.listen.allow, next.cache.maxTTL) == (wanted.listen.allow, .seconds(7)))
    (next.listen.allow, next.cache.maxTTL) = (running.listen.allow, running.cache.maxTTL)
    #expect(next.encrypted.json && next.encrypted.keyFile == "/tls/key.pem")
    next.encrypted = running.encrypted
    #expect(next == running)
    #expect(next.keepFixed(of: running).isEmpty)
  }

  @Test func `a network change reuses the hosts file, unless it is large`() throws {
    let folder = TemporaryFolder()
    func configuration(_ hosts: String) throws -> Configuration {
      try Configuration.parse(
        text: "[names]\nhosts_file = \"\(hosts)\"\n", fileName: "", environment: { _ in nil }
      ).configuration
    }
    func answers(_ preparation: Preparation) -> Bool {
      let octets = name("host.example").octets
      if case .local = preparation.plan.table.find(octets, length: octets.count, type: 1).decision { return true }
      return false
    }
    let line = "192.0.2.9 host.example\n"
    let filler = String(repeating: "# a long list\n", count: Preparation.Hosts.longest / 10)
    for (text, isLarge) in [(line, false), (line + filler, true)] {
      let path = folder.write(text, to: "hosts")
      let first = try Preparation(configuration(path), ServiceNumbers(), surroundings)
      #expect(answers(first))
      #expect(try answers(Preparation(first.configuration, first.numbers, surroundings, hostsOf: first)))
      #expect(unlink(path) == 0)
      let second = Result {
        try Preparation(first.configuration, first.numbers, surroundings, hostsOf: first)
      }
      #expect(((try? second.get()).map(answers) ?? false) == !isLarge)
    }
    // One that could not be read before is no reason to stay.
    let missing = try Preparation(configuration("\(folder.path)/none"), ServiceNumbers(), surroundings)
    let next = try Preparation(missing.configuration, missing.numbers, surroundings, hostsOf: missing)
    #expect(next.missingHosts == "\(folder.path)/none")
  }

  @Test func `the tables are rebuilt for a network at once, then at most every 10 s`() {
    var pace = RebuildPace()
    let start = BootInstant(nanoseconds: 5_000_000_000)
    #expect(pace.delay(at: start) == .zero)
    pace.begins(at: start)
    #expect(pace.delay(at: start + .seconds(3)) == .seconds(7))
    #expect(pace.delay(at: start + .seconds(11)) == .zero)
    // Between two networks there is nothing to follow, so that the next one does not have to wait for that.
    #expect(pace.delay(at: start + .seconds(11), hasResolvers: false) == .seconds(10))
  }
}

extension Preparation.Surroundings {
  /// A cache of its own, and no log.
  static var quiet: Preparation.Surroundings {
    let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 100))
    return Preparation.Surroundings(
      listeners: [], cache: cache, network: CurrentNetwork(of: cache), loopZone: name("probe.invalid"),
      logger: Logger(label: "") { _ in SwiftLogNoOpLogHandler() },
      lists: ListFolder(StateFolder(path: "/nowhere") { _ in }) { _, _ in })
  }
}
