// RefreshShareTests.swift -- what refreshing may cost, which names come first, and that no domain takes it all.

import Ciphers
import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import Configuration
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Refresh
@testable import Resolver
@testable import Upstreams

@Suite struct `The budget of refreshing` {
  private let loop = SimulatedLoop()

  private static let billed = RefreshPrice(isBilled: true, perTransfer: 1, perAnswer: 0)

  private func provider(_ price: RefreshPrice, ttl: UInt32 = 60) -> ScriptedUpstream {
    let upstream = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: ttl), after: .milliseconds(20))
    }
    upstream.traits.refreshPrice = price
    return upstream
  }

  private func scene(
    _ provider: ScriptedUpstream, keep: [String] = [], _ configure: (inout Configuration) -> Void = { _ in }
  ) -> RefresherScene {
    RefresherScene(ResolverScene(on: loop, [provider]), keep: keep) {
      $0 = Configuration()
      configure(&$0)
    }
  }

  /// Asks for each name once a second.
  ///
  /// - Returns: how often each of them had to wait after the first minute.
  private func waits(_ scene: RefresherScene, _ names: [String], minutes: Int) throws -> [String: Int] {
    var waits: [String: Int] = [:]
    for second in 0..<(60 * minutes) {
      let asked = names.map { ($0, scene.scene.ask($0)) }
      loop.advance(by: .milliseconds(500))
      for (name, number) in asked where second >= 60 {
        if try scene.scene.reply(number).after > .zero { waits[name, default: 0] += 1 }
      }
      loop.advance(by: .milliseconds(500))
    }
    return waits
  }

  @Test func `the default budget keeps 200 hot names with a TTL of 60 s fresh without billing`() throws {
    let provider = provider(.free)
    let scene = scene(provider)
    let names = (0..<200).map { "host\($0).example\($0 % 7).com" }
    #expect(try waits(scene, names, minutes: 6).isEmpty)
    #expect(scene.refresher.counters.overBudget == 0)
    #expect(provider.refreshes.count > 1_000)
  }

  @Test(arguments: [1, 5]) func `the budget serves the keep list first, before 150 hot names`(units: Int) throws {
    let provider = provider(RefreshPrice(isBilled: true, perTransfer: units, perAnswer: 0))
    let scene = scene(provider, keep: ["kept.example"])
    let names = (0..<150).map { "host\($0).other.com" }
    let waits = try waits(scene, names + ["kept.example"], minutes: 10)
    #expect(waits["kept.example"] == nil)
    #expect(waits.count == 150)
    let times = scene.refreshes(provider)
    for time in times { #expect(times.count { (time..<(time + 60)).contains($0) } * units <= 60) }
  }

  @Test func `the budget bounds the refetching after an outage, the keep list first`() throws {
    let provider = provider(RefreshPrice(isBilled: true, perTransfer: 1, perAnswer: 0), ttl: 30)
    let resolver = ResolverScene(on: loop, [provider]) { settings in
      for index in settings.routes.indices {
        (settings.routes[index].stale.mode, settings.routes[index].stale.maxAge) = (.onFailure, 86_400)
      }
    }
    let scene = RefresherScene(resolver, keep: ["kept.example"]) {
      $0 = Configuration()
      $0.refresh.budgetPerMinute = 20
    }
    let names = (0..<100).map { "host\($0).d\($0).example" }
    func askAll() {
      for name in names { resolver.ask(name) }
      loop.advance(by: .seconds(3))
    }
    askAll()
    provider.script = { _, _ in .failure() }
    loop.advance(by: .seconds(90))
    askAll()
    provider.script = { question, _ in .answer(.addresses(question.name, "192.0.2.1", ttl: 30)) }
    let (asked, refreshed) = (provider.asked.count, provider.refreshes.count)
    provider.tellBack()
    loop.advance(by: .seconds(2))
    let spent = provider.asked.count - asked + provider.refreshes.count - refreshed
    #expect((1...20).contains(spent), "\(spent)")
    #expect(provider.refreshes[refreshed].questions.first?.name == name("kept.example"))
    #expect(scene.refresher.counters.overBudget > 0)
  }

  @Test func `only the plain question counts as on the keep list, not with DO, CD or a subnet`() {
    let scene = scene(provider(.free), keep: ["kept.example"])
    func isOnKeepList(_ change: (inout HTTPDNSQuestion) -> Void) -> Bool {
      var question = HTTPDNSQuestion(name: name("kept.example"), type: .a)
      change(&question)
      return scene.refresher.isOnKeepList(question)
    }
    #expect(isOnKeepList { _ in })
    #expect(!isOnKeepList { $0.dnssecOK = true })
    #expect(!isOnKeepList { $0.checkingDisabled = true })
    #expect(!isOnKeepList { $0.clientSubnet = IPPrefix(text: "192.0.2.0/24") })
    #expect(!isOnKeepList { $0.type = .txt })
  }

  @Test func `without a keep list the budget serves all names, and the keep list may exceed its half`() throws {
    let alone = provider(Self.billed)
    let hot = scene(alone)
    _ = try waits(hot, (0..<150).map { "host\($0).other.com" }, minutes: 4)
    // With half of it kept back, no minute would have more than 30.
    let times = hot.refreshes(alone)
    #expect(times.contains { time in times.count { (time..<(time + 60)).contains($0) } > 31 })
    let provider = provider(Self.billed)
    let kept = scene(provider, keep: (0..<25).map { "kept\($0).example" })
    loop.advance(by: .seconds(240))
    #expect(provider.refreshes.count >= 25 * 240 / 60)
    #expect(kept.refresher.counters.overBudget == 0)
    withExtendedLifetime(hot) {}
  }

  @Test func `the budget leaves each domain its share`() throws {
    let provider = provider(Self.billed)
    let scene = scene(provider)
    let greedy = (0..<300).map { "host\($0).greedy.com" }
    let modest = (0..<10).map { "host\($0).modest.org" }
    let waits = try waits(scene, greedy + modest, minutes: 10)
    // The first minutes are needed to see what they want. In turn with the others each would wait some seven times.
    #expect(modest.reduce(0) { $0 + (waits[$1] ?? 0) } <= 3 * modest.count)
    #expect(greedy.reduce(0) { $0 + (waits[$1] ?? 0) } > 1_000)
    // What the modest domain does not want is the other's: more than half of the budget, how much depends on random hashes.
    let late = provider.refreshes.filter { scene.seconds($0.at) >= 300 }.flatMap(\.questions)
    let names = Set(greedy.map { name($0) })
    #expect(late.count { names.contains($0.name) } >= 5 * 32)
  }

  @Test func `the budget counts units, and a batch holds no more than can be paid`() throws {
    let one = provider(RefreshPrice(isBilled: true, perTransfer: 5, perAnswer: 0))
    let costly = scene(one)
    _ = try waits(costly, (0..<100).map { "host\($0).example" }, minutes: 4)
    #expect((1...12 * 4).contains(one.refreshes.count))
    let batch = provider(RefreshPrice(isBilled: true, perTransfer: 0, perAnswer: 8))
    batch.traits.mostNames = 5
    let scene = scene(batch, keep: ["a.example", "b.example", "c.example"])
    loop.advance(by: .seconds(600))
    #expect(scene.refresher.counters.overBudget == 0)
    for refresh in batch.refreshes { #expect(refresh.questions.count * 8 <= 30) }
    #expect(batch.refreshes.flatMap(\.questions).count > 30)
    withExtendedLifetime(costly) {}
  }

  @Test func `a name that is billed by the name costs once for both families`() throws {
    let price = RefreshPrice(isBilled: true, perTransfer: 0, perName: 5, perAnswer: 0)
    var limits = Configuration().refresh
    (limits.budgetPerMinute, limits.budgetPerDay) = (40, 1_000)
    let spending = RefreshSpending(limits, on: loop, ledger: nil, note: { _ in })
    let items = ["a", "a", "b", "b", "c"].map {
      RefreshSpending.Item(name: name("\($0).example"), isOnKeepList: true)
    }
    #expect(spending.take(items, price) == [true, true, true, true, true])
    // 15 of 40 units are spent, so that five of further names can be paid for.
    let more = (0..<6).map { RefreshSpending.Item(name: name("n\($0).example"), isOnKeepList: true) }
    #expect(spending.take(more, price) == [true, true, true, true, true, false])
    #expect(spending.mostNames(price) == 8)
    #expect(spending.mostNames(RefreshPrice(isBilled: true, perTransfer: 10, perName: 5, perAnswer: 5)) == 2)
  }

  @Test func `the budget follows the configuration for billed and free providers`() throws {
    let text = { (text: String) in try Configuration.parse(text: text, fileName: "test") }
    let defaults = try text("").configuration.refresh
    #expect((defaults.budgetPerMinute, defaults.budgetPerDay, defaults.freePerMinute) == (60, 10_000, 1_200))
    let given = try text("[refresh]\nbudget_per_minute = 7\nbudget_per_day = 9").configuration.refresh
    #expect((given.budgetPerMinute, given.budgetPerDay, given.freePerMinute) == (7, 9, 7))
    let spending = RefreshSpending(given, on: loop, ledger: nil, note: { _ in })
    let item = RefreshSpending.Item(name: name("www.example"), isOnKeepList: true)
    #expect((0..<20).count { _ in spending.take([item], .free) == [true] } == 7)
    #expect((0..<20).count { _ in spending.take([item], Self.billed) == [true] } == 7)
  }

  @Test func `without billing the budget has no daily limit, except 0`() {
    for (perDay, expected) in [(3, 20), (0, 0)] {
      var limits = Configuration().refresh
      (limits.budgetPerMinute, limits.budgetPerDay, limits.freePerMinute) = (1_000, perDay, 1_000)
      let spending = RefreshSpending(limits, on: loop, ledger: nil, note: { _ in })
      let item = RefreshSpending.Item(name: name("www.example"), isOnKeepList: true)
      #expect((0..<20).count { _ in spending.take([item], .free) == [true] } == expected)
      #expect((0..<20).count { _ in spending.take([item], Self.billed) == [true] } == perDay)
    }
  }

  @Test func `the billed budget applies if any provider bills`() {
    let credential = Configuration.AliDNSAccount(
      accountID: "1", accessKeyID: "id", accessKeySecret: Secret("secret"))
    let dialects: [(any Dialect, RefreshPrice)] = [
      (JSONDialect(flavour: .generic, path: "/resolve"), .free),
      (AliDNSDialect(account: nil, isEncrypted: true), .free),
      (
        AliDNSDialect(account: credential, isEncrypted: true),
        RefreshPrice(isBilled: true, perTransfer: 5, perAnswer: 0)
      ),
      (
        EMASDialect(accountID: "1", secretKey: nil, isEncrypted: true),
        RefreshPrice(isBilled: true, perTransfer: 0, perAnswer: 5)
      ),
      (TencentDialect(account: .https(token: Secret("token"), id: nil)), Self.billed),
    ]
    for (dialect, price) in dialects {
      let provider = HTTPDNSProvider(
        Configuration.Provider.tested(name: "p"), dialect: dialect, servers: [], loop: loop)
      #expect(provider.refreshPrice == price)
    }
  }
}
