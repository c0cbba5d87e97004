// RankerTests.swift -- when addresses are measured, and what becomes of answers, on the simulated loop.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Ranking
@testable import Resolver
@testable import Upstreams

private let (good, slow, dead) = ("192.0.2.1", "192.0.2.2", "192.0.2.3")

@Suite struct `Ranking of addresses` {
  private let loop = SimulatedLoop()
  private let provider: ScriptedUpstream
  private let scene: ResolverScene
  private var prober: ScriptedProber { scene.prober }

  init() {
    provider = ScriptedUpstream(on: loop) { question, _ in
      let hasPrivate = question.name == name("private.example.com")
      let answer: HTTPDNSAnswer =
        hasPrivate
        ? .addresses(question.name, dead, "10.0.0.1", ttl: 600) : .addresses(question.name, dead, slow, good, ttl: 600)
      return .answer(answer, after: .milliseconds(20))
    }
    scene = ResolverScene(on: loop, [provider])
    scene.prober.milliseconds = { address, _ in
      switch address.description {
      case good: 20
      case slow: 80
      default: nil
      }
    }
  }

  private func use(_ change: (inout RankingSettings) -> Void = { $0.section.probe = [.tcp(port: 443)] }) {
    var settings = RankingSettings()
    change(&settings)
    scene.resolver.assumeIsolated { $0.useRanking(settings) }
  }

  private func addresses(_ text: String = "www.example.com") throws -> [String] { try scene.answer(text).addresses }

  /// Probes but the canary's.
  private var probes: [ScriptedProber.Sent] { prober.sent.filter { !$0.address.description.hasPrefix("198.51.100.") } }

  private var counters: RankingCounters { scene.resolver.assumeIsolated { $0.ranking!.counters } }

  private func report(_ address: String, _ result: AddressReport.Result, _ text: String = "www.example.com") -> Int {
    let batch = ReportBatch([AddressReport(name: name(text), address: IPAddress(text: address)!, result: result)])
    guard case .taken(let counted, _) = scene.resolver.assumeIsolated({ $0.take(batch) }) else { return -1 }
    return counted
  }

  // MARK: When

  @Test func `a name that is asked for once costs no probe`() throws {
    use()
    _ = try addresses()
    loop.advance(by: .seconds(500))
    #expect(prober.sent.isEmpty)
  }

  @Test func `what is cached already is measured once ranking is switched on`() throws {
    _ = try addresses()
    loop.advance(by: .seconds(30))
    use()
    loop.advance(by: .seconds(1))
    #expect(try addresses().count == 3)
    loop.advance(by: .seconds(5))
    #expect(try addresses() == [good, slow, dead])
    #expect(provider.count == 1)
  }

  @Test func `it says what hinders measurements`() throws {
    var report: RankingReport? { scene.resolver.assumeIsolated { $0.ranking } }
    #expect(report?.measures == false)
    use { $0.section.probe = [.tcp(port: 443), .icmp] }
    #expect(report?.measures == true && report?.problems == [])
    (prober.isPingRefused, prober.problem) = (true, PingPermission.problem)
    prober.milliseconds = { _, _ in 1 }
    _ = try addresses()
    loop.advance(by: .seconds(1))
    _ = try addresses()
    loop.advance(by: .seconds(5))
    let found = try #require(report?.problems)
    #expect(found.count == 2)
    #expect(found.first?.contains("the kernel refuses ping sockets; set sysctl net.ipv4.ping_group_range=") == true)
    #expect(found.last?.contains("this network answers connections to any address") == true)
  }

  @Test func `off, it has no timer`() throws {
    _ = try addresses()
    _ = try addresses()
    #expect(loop.timers.earliest == nil)
    #expect(scene.resolver.assumeIsolated { $0.ranking?.answers } == 0)
  }

  @Test func `a dead address is last from 6 s after the name came into use`() throws {
    use()
    _ = try addresses()
    loop.advance(by: .seconds(1))
    _ = try addresses()
    loop.advance(by: .seconds(5))
    for _ in 0..<30 {
      #expect(try addresses() == [good, slow, dead])
      loop.advance(by: .seconds(1))
    }
    // Two samples of each, and one connection to an address that does not exist.
    #expect(probes.map(\.address.description).sorted() == [good, good, slow, slow, dead, dead].sorted())
    #expect(prober.sent.count == 7)
    #expect(counters.answered == ["tcp": 4] && counters.failed == ["tcp": 2])
    #expect(counters.rearranged == 1)
  }

  @Test func `no client waits: the first answer leaves before the first probe`() throws {
    use { $0.section.domains = [.subtree(name("example.com")): [.icmp]] }
    let number = scene.ask("www.example.com")
    loop.advance(by: .milliseconds(20))
    #expect(try scene.reply(number).after == .milliseconds(20))
    #expect(probes.allSatisfy { $0.at >= loop.now })
    loop.advance(by: .seconds(3))
    // A listed name is measured without a second query.
    #expect(try addresses() == [good, slow, dead])
    #expect(prober.sent.allSatisfy { $0.kind == .icmp })
  }

  @Test func `an address in use is measured once an interval, for all its names`() throws {
    use()
    for _ in 0..<1800 {
      _ = try addresses()
      _ = try addresses("other.example")
      loop.advance(by: .seconds(2))
    }
    let count = probes.count { $0.address.description == good }
    // Two samples at first, then one every ten minutes for an hour, by the name that comes first.
    #expect((6...9).contains(count))
  }

  @Test func `an address that worked and fails is last after two failures, 5 s apart`() throws {
    use()
    for _ in 0..<10 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    prober.milliseconds = { address, _ in address.description == slow ? 80 : nil }
    let died = loop.now
    var last: BootInstant?
    for _ in 0..<1000 where last == nil {
      loop.advance(by: .seconds(1))
      if try addresses().first == slow { last = loop.now }
    }
    let took = try #require(last) - died
    #expect(took <= .seconds(600 + 10))
    // The second failure counts if the probe after it fails too: each may have been lost.
    let failures = probes.filter { $0.at > died && $0.address.description == good }
    #expect(failures.count == 3)
    #expect(failures[1].at - failures[0].at >= .seconds(5))
    #expect(failures[2].at - failures[1].at >= .seconds(1))
  }

  /// Answers `nN.example` with 203.0.N.1 and 203.0.N.2, which answer each of at most 20 probes a minute.
  private func sceneOfManyNames() -> ResolverScene {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      let number = Int(question.name.text.dropFirst().prefix { $0.isNumber }) ?? 0
      return .answer(.addresses(question.name, "203.0.\(number).1", "203.0.\(number).2", ttl: 600))
    }
    let scene = ResolverScene(on: loop, [provider])
    scene.prober.milliseconds = { _, _ in 10 }
    var settings = RankingSettings()
    (settings.section.probe, settings.section.probesPerMinute) = ([.icmp], 20)
    scene.resolver.assumeIsolated { $0.useRanking(settings) }
    return scene
  }

  @Test func `one client cannot use up the probes`() throws {
    let scene = sceneOfManyNames()
    for number in 1..<40 {
      for _ in 0..<9 { _ = try scene.answer(ClientQuestion(name: "n\(number).example", client: 1)) }
    }
    loop.advance(by: .seconds(10))
    #expect(scene.prober.sent.count == 15)
    for _ in 0..<2 { _ = try scene.answer(ClientQuestion(name: "n99.example", client: 2)) }
    loop.advance(by: .seconds(10))
    #expect(scene.prober.sent.count { $0.address.octets[2] == 99 } == 4)
    #expect(scene.prober.sent.count == 19)
  }

  @Test func `no minute has more probes than allowed, and the most used names come first`() throws {
    let scene = sceneOfManyNames()
    for number in 0..<40 {
      let question = ClientQuestion(name: "n\(number).example", client: UInt16(number % 2 + 1))
      for _ in 0...(number + 1) { _ = try scene.answer(question) }
    }
    loop.advance(by: .seconds(600))
    let times = scene.prober.sent.map(\.at)
    #expect(times.count == 160)
    for index in times.indices.dropFirst(20) { #expect(times[index] - times[index - 20] >= .seconds(60)) }
    #expect(scene.prober.mostInFlight <= 10)
    // In the first minute they came as the names came into use.
    #expect(scene.prober.sent[20..<40].allSatisfy { $0.address.octets[2] >= 28 })
    #expect(scene.resolver.assumeIsolated { $0.ranking!.counters.deferred } > 0)
    var last: [IPAddress: BootInstant] = [:]
    for probe in scene.prober.sent {
      if let before = last[probe.address] { #expect(probe.at - before >= .seconds(1)) }
      last[probe.address] = probe.at
    }
  }

  // MARK: The order

  @Test func `a refresh does not undo the order`() throws {
    use()
    for _ in 0..<8 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    _ = loop.run { await scene.resolver.refresh(name("www.example.com"), types: [(.a, 0)], onlyThese: false) }
    #expect(provider.asked.count == 2)
    #expect(try addresses() == [good, slow, dead])
  }

  @Test func `another name with the same addresses is in order from its first answer on`() throws {
    use()
    for _ in 0..<8 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    #expect(try addresses("other.example") == [good, slow, dead])
  }

  @Test func `an address that answers the preferred kind comes before faster ones that do not`() throws {
    prober.milliseconds = { address, kind in
      if kind == .icmp { return 1 }
      return address.description == slow ? 300 : nil
    }
    use { $0.section.probe = [.tcp(port: 443), .icmp] }
    for _ in 0..<9 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    #expect(try addresses().first == slow)
    // The next kind is tried only where the one before failed.
    #expect(probes.contains { $0.kind == .icmp && $0.address.description == good })
    #expect(!probes.contains { $0.kind == .icmp && $0.address.description == slow })
  }

  @Test func `TCP measurements are ignored where connections to unused addresses are accepted`() throws {
    prober.milliseconds = { _, _ in 1 }
    use()
    let before = try addresses()
    for _ in 0..<10 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    #expect(Set(try (0..<3).map { _ in try addresses()[0] }) == Set(before))
    #expect(scene.notes.count { $0.contains("answers connections to any address") } == 1)
    #expect(counters.rearranged == 0)
  }

  @Test func `the round of a name that comes into use meanwhile ends after the canary as well`() throws {
    prober.milliseconds = { address, _ in address.description.hasPrefix("198.51.100.") ? 900 : 1 }
    // A private address is not measured: the round is over when this one has refused.
    prober.refuses = { address, _ in address.description == dead }
    use()
    for _ in 0..<2 { _ = try addresses() }
    loop.advance(by: .milliseconds(500))
    for _ in 0..<2 { _ = try addresses("private.example.com") }
    loop.advance(by: .seconds(10))
    #expect(scene.notes.count { $0.contains("answers connections to any address") } == 1)
    #expect(counters.rearranged == 0)
  }

  @Test func `a canary that a reload gave up is asked again`() throws {
    prober.milliseconds = { _, _ in 900 }
    use()
    func isAsked() -> Bool { prober.sent.contains { $0.address.description.hasPrefix("198.51.100.") } }
    for _ in 0..<100 where !isAsked() {
      _ = try addresses()
      loop.advance(by: .milliseconds(100))
    }
    #expect(isAsked() && prober.inFlight > 0)
    use { $0.section.probe = [.tcp(port: 80)] }
    for _ in 0..<10 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    #expect(scene.notes.count { $0.contains("answers connections to any address") } == 1)
  }

  @Test func `what the canary found holds until it has answered again`() {
    var watch = CanaryWatch()
    let hour: Int64 = 3_600_000_000_000
    /// Whether the outcome is news.
    func ended(_ hasAnswered: Bool) -> Bool { watch.ended(hasAnswered: hasAnswered, isIPv6: false, on: 7) }
    watch.asks(isIPv6: false, on: 7, now: 0)
    #expect(!watch.isVoid(isIPv6: false, on: 7))
    let first = ended(true)
    #expect(first)
    #expect(!watch.isDue(isIPv6: false, on: 7, now: hour - 1) && watch.isDue(isIPv6: false, on: 7, now: hour))
    watch.asks(isIPv6: false, on: 7, now: hour)
    #expect(watch.isVoid(isIPv6: false, on: 7))
    let second = ended(true)
    #expect(!second)
    let third = ended(false)
    #expect(!third && !watch.isVoid(isIPv6: false, on: 7))
    // The network is another one by now.
    watch.asks(isIPv6: false, on: 8, now: hour)
    let late = ended(true)
    #expect(!late && !watch.isVoid(isIPv6: false, on: 8))
  }

  @Test func `without ping sockets the other kinds go on`() throws {
    prober.isPingRefused = true
    use { $0.section.probe = [.icmp, .tcp(port: 443)] }
    for _ in 0..<8 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    #expect(try addresses() == [good, slow, dead])
    #expect(prober.sent.allSatisfy { $0.kind != .icmp })
  }

  @Test func `jitter and losses change the first address at most twice in 24 hours`() throws {
    var random = SeededGenerator(seed: testSeed)
    let base = ["192.0.2.1": 20.0, "192.0.2.2": 40, "192.0.2.3": 60]
    prober.milliseconds = { address, _ in
      guard Double.random(in: 0..<1, using: &random) >= 0.05 else { return nil }
      return base[address.description].map { $0 * Double.random(in: 0.8...1.2, using: &random) }
    }
    use { $0.section.probe = [.icmp] }
    for _ in 0..<10 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    var (changes, first) = (0, try addresses()[0])
    for _ in 0..<(24 * 360) {
      loop.advance(by: .seconds(10))
      let now = try addresses()[0]
      if now != first { changes += 1 }
      first = now
    }
    #expect(changes <= 2, "seed \(testSeed)")
    #expect(probes.count > 400)
  }

  // MARK: Fewer addresses

  @Test func `an answer shows the best addresses once one works, and the others are measured on`() throws {
    use { ($0.section.probe, $0.section.answers, $0.section.interval) = ([.tcp(port: 443)], 1, .seconds(60)) }
    #expect(try addresses().count == 3)
    for _ in 0..<8 {
      loop.advance(by: .seconds(1))
      _ = try addresses()
    }
    #expect(try addresses() == [good])
    // The best one dies, and the next one takes its place.
    prober.milliseconds = { address, _ in address.description == slow ? 80 : nil }
    for _ in 0..<80 {
      loop.advance(by: .seconds(1))
      _ = try addresses()
    }
    #expect(try addresses() == [slow])
    // A refresh brings all, and the same one is shown.
    _ = loop.run { await scene.resolver.refresh(name("www.example.com"), types: [(.a, 0)], onlyThese: false) }
    #expect(try addresses() == [slow])
    // None works: all are shown.
    prober.milliseconds = { _, _ in nil }
    for _ in 0..<80 {
      loop.advance(by: .seconds(1))
      _ = try addresses()
    }
    #expect(try addresses().count == 3)
  }

  @Test func `an answer that is composed again is as old as before, and expires when it would have`() throws {
    use { ($0.section.probe, $0.section.answers) = ([.tcp(port: 443)], 2) }
    for second in 0..<599 {
      let message = try scene.answer("www.example.com")
      #expect(message.answers.allSatisfy { (UInt32(599 - second)...UInt32(601 - second)).contains($0.ttl) })
      loop.advance(by: .seconds(1))
    }
    #expect(provider.asked.count == 1)
    loop.advance(by: .seconds(2))
    #expect(try addresses().count == 2)
    #expect(provider.asked.count == 2)
  }

  // MARK: Who

  @Test(arguments: [
    ("192.0.2.1", true, true), ("2001:db8::1", true, true), ("10.0.0.1", false, true), ("192.168.1.1", false, true),
    ("100.64.0.1", false, true), ("127.0.0.1", false, true), ("fd00::1", false, true), ("::1", false, true),
    ("64:ff9b::a00:1", false, true), ("169.254.169.254", false, false), ("fe80::1", false, false),
    ("224.0.0.1", false, false), ("255.255.255.255", false, false), ("0.0.0.0", false, false), ("::", false, false),
    ("ff02::1", false, false), ("::ffff:169.254.169.254", false, false), ("::ffff:10.0.0.1", false, true),
    ("64:ff9b::a9fe:a9fe", false, false), ("2002:a9fe:a9fe::1", false, false), ("203.0.113.5", true, true),
  ])
  func `a DNS answer does not choose whom the daemon knocks at`(text: String, isPublic: Bool, isListed: Bool) {
    let address = IPAddress(text: text)!
    #expect(RankingSettings().mayMeasure(address, isListed: false) == isPublic)
    #expect(RankingSettings().mayMeasure(address, isListed: true) == isListed)
    var settings = RankingSettings()
    settings.privatePrefixes = [IPPrefix(text: "192.0.2.0/24")!, IPPrefix(text: "2001:db8::/32")!]
    #expect(settings.mayMeasure(address, isListed: false) == (isPublic && text.hasPrefix("203.")))
  }

  @Test func `the longest pattern says how a name is measured`() {
    var settings = RankingSettings()
    settings.section.probe = [.icmp]
    settings.section.domains = [
      .subtree(name("example.com")): [.tcp(port: 1)], .below(name("cdn.example.com")): [.tcp(port: 2)],
      .exact(name("www.example.com")): [], .subtree(name("lan")): [],
    ]
    func kinds(_ text: String) -> [ProbeKind] { settings.measures(for: name(text)).kinds }
    #expect(kinds("example.org") == [.icmp])
    #expect(kinds("example.com") == [.tcp(port: 1)])
    #expect(kinds("cdn.example.com") == [.tcp(port: 1)])
    #expect(kinds("a.cdn.example.com") == [.tcp(port: 2)])
    #expect(kinds("www.example.com") == [])
    #expect(kinds("a.www.example.com") == [.tcp(port: 1)])
    #expect(kinds("printer.lan") == [])
  }

  // MARK: Changes

  @Test func `another network knows nothing of the one before`() throws {
    use()
    for _ in 0..<8 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    let before = probes.count
    scene.network.change(to: 9)
    scene.resolver.assumeIsolated { $0.networkHasChanged() }
    prober.milliseconds = { address, _ in [dead: 5, good: 500][address.description] }
    for _ in 0..<8 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    #expect(try addresses().first == dead)
    #expect(probes.count == before + 6)
  }

  @Test func `a reload that turns it off ends everything`() throws {
    use()
    for _ in 0..<3 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    #expect(prober.inFlight > 0)
    use { _ in }
    #expect(prober.inFlight == 0)
    let count = prober.sent.count
    for _ in 0..<30 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    #expect(prober.sent.count == count)
    #expect(scene.resolver.assumeIsolated { $0.ranking?.answers } == 0)
  }

  // MARK: Reports

  @Test func `three reports of a failure put an address last for a while`() throws {
    _ = try addresses()
    #expect(report(good, .failed) == 1)
    #expect(report(good, .failed) == 1)
    #expect(Set(try (0..<3).map { _ in try addresses()[0] }).count == 3)
    #expect(report(good, .failed) == 1)
    for _ in 0..<6 { #expect(try addresses().last == good) }
    loop.advance(by: .seconds(590))
    // The answer is another one by now.
    _ = loop.run { await scene.resolver.refresh(name("www.example.com"), types: [(.a, 0)], onlyThese: false) }
    for _ in 0..<6 { #expect(try addresses().last == good) }
    loop.advance(by: .seconds(11))
    #expect(Set(try (0..<3).map { _ in try addresses()[0] }).count == 3)
  }

  @Test func `a success ends it`() throws {
    _ = try addresses()
    #expect(report(good, .bad) == 1)
    #expect(try addresses().last == good)
    #expect(report(good, .works(milliseconds: 12)) == 1)
    #expect(Set(try (0..<3).map { _ in try addresses()[0] }).count == 3)
  }

  @Test func `only what was answered can be reported, and only for its name`() throws {
    _ = try addresses()
    _ = try addresses("other.example")
    #expect(report("203.0.113.7", .bad) == 0)
    #expect(report(good, .bad, "never.example") == 0)
    #expect(report(good, .bad) == 1)
    #expect(try addresses().last == good)
    #expect(Set(try (0..<3).map { _ in try addresses("other.example")[0] }).count == 3)
  }

  @Test func `the last good address cannot be reported away`() throws {
    use()
    for _ in 0..<8 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    for address in [good, slow] { #expect(report(address, .bad) == 1) }
    #expect(try addresses() == [good, slow, dead])
  }

  @Test func `more than a hundred reports in a second are refused`() throws {
    _ = try addresses()
    for _ in 0..<100 { #expect(report(good, .failed) == 1) }
    #expect(report(good, .failed) == -1)
    loop.advance(by: .seconds(1))
    #expect(report(good, .works(milliseconds: nil)) == 1)
    #expect(counters.badReports == 100 && counters.goodReports == 1)
  }

  @Test func `switched off, neither a report nor report-bad does anything`() throws {
    use { $0.section.reports = false }
    _ = try addresses()
    #expect(report(good, .bad) == -1)
    let outcome = loop.run {
      await scene.resolver.console { await $0.reportBad(IPAddress(text: good)!, of: name("www.example.com")) }
    }
    #expect(outcome == BadAddressOutcome(isOff: true))
    #expect(Set(try (0..<3).map { _ in try addresses()[0] }).count == 3)
  }

  @Test func `the cache shows what is known of each address`() throws {
    use()
    for _ in 0..<8 {
      _ = try addresses()
      loop.advance(by: .seconds(1))
    }
    _ = report(slow, .works(milliseconds: 44))
    let content = loop.run { await scene.resolver.console { await $0.content(of: name("www.example.com")) } }
    let figures = try #require(content.entries.first?.addresses)
    #expect(figures.map(\.address.description) == [good, slow, dead])
    #expect(figures[0].probes.map(\.kind) == ["tcp:443"] && figures[0].probes[0].roundTrip == .milliseconds(20))
    #expect(figures[1].reportedMilliseconds == 44)
    #expect(figures[2].probes[0].roundTrip == nil && figures[2].probes[0].failures == 1)
  }
}
