// ProviderSetTests.swift -- which providers stay over a reload, and what the new ones have from the old.

import Configuration
import EventLoop
import Glibc
import HTTPClient
import LocalDNS
import Persistence
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `The providers of the next configuration` {
  private let loop: EventLoop
  private var factory: ProviderFactory

  init() throws {
    loop = try EventLoop()
    factory = ProviderFactory(
      loop: loop, localClient: LocalDNSClient(loop: loop), systemServers: { [] }, localServers: [], maxInFlight: 10,
      state: StateFolder(path: "/nonexistent") { _ in }, ledger: nil
    ) { _, _ in }
  }

  private func configuration(_ text: String) throws -> Configuration {
    try Configuration.parse(text: text, fileName: "", environment: { _ in nil }).configuration
  }

  private func provider(_ name: String, _ host: String = "192.0.2.1", _ more: String = "") -> String {
    "[[provider]]\nname = \"\(name)\"\nkind = \"doh\"\nurl = \"https://\(host)/dns-query\"\n\(more)\n"
  }

  @Test func `providers with unchanged settings are reused in any order`() throws {
    let first = try ProviderSet().following(
      configuration(provider("a") + provider("b", "192.0.2.2") + provider("c", "192.0.2.3")), factory)
    let second = try first.following(
      configuration(provider("d") + provider("c", "192.0.2.3") + provider("a") + provider("b", "192.0.2.9")), factory)
    #expect(second.upstreams.map(\.name) == ["d", "c", "a", "b"])
    #expect(second.upstreams[1] === first.upstreams[2])
    #expect(second.upstreams[2] === first.upstreams[0])
    #expect(second.upstreams[3] !== first.upstreams[1])
  }

  @Test func `providers are replaced if the resolvers of their servers change`() throws {
    let texts = ["[localdns]\nservers = [\"192.0.2.53\"]\n", "[localdns]\nservers = [\"192.0.2.54\"]\n"].map {
      provider("a") + provider("b", "dns.example") + provider("c", "dns.example", "bootstrap = [\"192.0.2.55\"]") + $0
    }
    let first = try ProviderSet().following(configuration(texts[0]), factory)
    let second = try first.following(configuration(texts[1]), factory)
    #expect(zip(first.upstreams, second.upstreams).map { $0 === $1 } == [true, false, true])
  }

  @Test func `nothing changes if one provider cannot be created`() throws {
    let file = TemporaryFile("-----BEGIN CERTIFICATE-----\nnothing\n")
    let first = try ProviderSet().following(configuration(provider("a")), factory)
    let bad = try configuration(provider("a", "192.0.2.2") + provider("b", "192.0.2.3", "ca_file = \"\(file.path)\""))
    #expect(throws: ProviderSetupError.self) { try first.following(bad, factory) }
    #expect(first.upstreams.map(\.name) == ["a"])
  }

  @Test func `providers are replaced if their CA file changes`() throws {
    let file = TemporaryFile(TestAuthority.certificate)
    let configuration = try configuration(provider("a", "192.0.2.1", "ca_file = \"\(file.path)\"") + provider("b"))
    let first = try ProviderSet().following(configuration, factory)
    let same = try first.following(configuration, factory)
    #expect(zip(first.upstreams, same.upstreams).allSatisfy { $0 === $1 })
    file.rewrite(TestAuthority.certificate + TestAuthority.certificate)
    let second = try first.following(configuration, factory)
    #expect(zip(first.upstreams, second.upstreams).map { $0 === $1 } == [false, true])
  }

  @Test func `providers inherit counters and units by name, and pay for transfers in flight`() throws {
    let first = try ProviderSet().following(configuration(provider("a", "192.0.2.1", "units_per_day = 100")), factory)
    let old = try #require(first.upstreams[0] as? HTTPDNSProvider)
    old.counters.values.transfers = 12
    old.limits.pay(70)
    let second = try first.following(configuration(provider("a", "192.0.2.2", "units_per_day = 71")), factory)
    let new = try #require(second.upstreams[0] as? HTTPDNSProvider)
    first.retire(for: second)
    #expect(old.limits.isRetired && !new.limits.isRetired)
    #expect((new.report.unitsToday, new.report.unitsPerDay, new.report.counters.transfers) == (70, 71, 12))
    #expect(new.limits.hasUnits)
    old.limits.pay(1)
    #expect(new.report.unitsToday == 71)
    #expect(!new.limits.hasUnits)
    #expect(new.report.counters.units == 71)
    old.counters.values.refusals += 1
    #expect(new.report.counters.refusals == 1)
  }

  @Test func `a provider of another kind continues the counters of its name`() throws {
    func table(_ interval: String) -> String {
      "[[provider]]\nname = \"a\"\nkind = \"table\"\nurl = \"https://192.0.2.1/table\"\ninterval = \"\(interval)\"\n"
    }
    var set = try ProviderSet().following(configuration(provider("a")), factory)
    let first = try #require(set.upstreams[0] as? HTTPDNSProvider)
    first.counters.values.transfers = 12
    for (number, next) in [table("5m"), table("6m"), provider("a", "192.0.2.2")].enumerated() {
      let heirs = try set.following(configuration(next), factory)
      set.retire(for: heirs)
      set = heirs
      #expect(set.upstreams[0].report.counters.transfers == 12 + number)
      // Transfers in flight from the start continue.
      first.counters.values.transfers += 1
    }
    #expect(set.upstreams[0].report.counters.transfers == 15)
  }

  @Test func `a provider that returns starts with the units spent today`() throws {
    let file = TemporaryFile("")
    var factory = factory
    let ledger = UnitLedger(StateFile(path: file.path) { _ in }, on: loop)
    factory.ledger = ledger
    let limited = provider("a", "192.0.2.1", "units_per_day = 100")
    let first = try ProviderSet().following(configuration(limited), factory)
    let old = try #require(first.upstreams[0] as? HTTPDNSProvider)
    old.start()
    old.limits.pay(30)
    let second = try first.following(configuration(provider("b")), factory)
    first.retire(for: second)
    ledger.close()
    let third = try second.following(configuration(limited), factory)
    #expect((third.upstreams[0] as? HTTPDNSProvider)?.limits.budget.spent == 30)
    let later = UnitLedger(StateFile(path: file.path) { _ in }, on: loop)
    #expect(later.budget(of: "a", perDay: 100).spent == 30)
  }

  @Test func `units spent without a limit are saved as soon as a reload sets one`() throws {
    let file = TemporaryFile("")
    let first = try ProviderSet().following(configuration(provider("a")), factory)
    let old = try #require(first.upstreams[0] as? HTTPDNSProvider)
    old.limits.pay(20)
    var factory = factory
    let ledger = UnitLedger(StateFile(path: file.path) { _ in }, on: loop)
    factory.ledger = ledger
    let second = try first.following(configuration(provider("a", "192.0.2.1", "units_per_day = 15")), factory)
    second.upstreams[0].start()
    first.retire(for: second)
    ledger.close()
    let later = UnitLedger(StateFile(path: file.path) { _ in }, on: loop)
    #expect(later.budget(of: "a", perDay: 15).spent == 20)
  }

  @Test func `all providers begin, and hear of a change of network`() throws {
    let file = TemporaryFile("{\"service\":\"s\",\"enable\":1,\"domainlist\":[]}")
    let table = "[[provider]]\nname = \"t\"\nkind = \"table\"\nfile = \"\(file.path)\"\n"
    let set = try ProviderSet().following(configuration(table + provider("a") + provider("b")), factory)
    let first = try #require(set.upstreams[0] as? TableProvider)
    #expect(first.table == nil)
    set.start()
    #expect(first.table != nil)
    #expect(set.upstreams.dropFirst().allSatisfy { $0.pace.verdicts.recoveredAt < loop.now })
    set.networkHasChanged()
    #expect(set.upstreams.dropFirst().allSatisfy { $0.pace.verdicts.recoveredAt == loop.now })
  }

  @Test func `removed providers are released when nothing is in flight`() throws {
    weak var old: HTTPDNSProvider?
    var set = try ProviderSet().following(configuration(provider("a")), factory)
    old = set.upstreams[0] as? HTTPDNSProvider
    for number in 2...50 {
      let next = try set.following(configuration(provider("a", "192.0.2.\(number)")), factory)
      set.retire(for: next)
      set = next
      #expect(old == nil)
      old = set.upstreams[0] as? HTTPDNSProvider
    }
    #expect(loop.timers.count == 0)
  }
}
