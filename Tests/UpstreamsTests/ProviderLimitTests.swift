// ProviderLimitTests.swift -- limits per second and day, what is paid for, and bursts with a wrong clock.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import Persistence
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Upstreams

@Suite struct ProviderLimitTests {
  private typealias Scene = ProviderScene

  private static let good = HTTPResult.address("192.0.2.7")
  private static let empty = HTTPResult.json(
    #"{"Status":0,"Question":{"name":"www.example.com.","type":1},"Answer":[]}"#)
  private let www = "www.example.com"

  private func successes(_ results: [Result<UpstreamAnswer, UpstreamFailure>]) -> Int {
    results.count(where: \.isAnswer)
  }

  @Test func `transfers beyond requests_per_second lead to no other upstream than the next provider`() {
    let scene = ProviderScene([Scene.always(ProviderLimitTests.good)], .tested(name: "first", requestsPerSecond: 2))
    let begin = scene.loop.now
    var failures = 0
    for _ in 0..<400 {
      if let failure = scene.ask().failure {
        #expect(failure.consequence == .limit)
        failures += 1
        scene.loop.advance(by: .milliseconds(10))
      }
    }
    let seconds = Int((scene.loop.now - begin).components.seconds)
    #expect(scene.servers[0].sent.count <= 2 * (seconds + 1) + 2)
    #expect(scene.servers[0].sent.count >= 2 * seconds)
    #expect(failures > 100)
  }

  @Test func `each transfer counts for requests_per_second, the next server's too`() {
    let scene = ProviderScene(
      [Scene.always(.json("{")), Scene.always(ProviderLimitTests.good)],
      .tested(name: "first", attemptsBeforeSwitch: 100, requestsPerSecond: 3))
    #expect(scene.ask().isAnswer)
    let failure = scene.ask().failure
    #expect(failure?.consequence == .limit && failure?.reason.contains("more than requests_per_second (3)") == true)
    #expect(scene.servers.map(\.sent.count) == [2, 1])
    #expect(scene.provider.counters.values.refusals == 1)
    scene.loop.advance(by: .seconds(1))
    #expect(scene.ask().isAnswer)
  }

  @Test func `a day's units are spent once, and the next day is a new one`() {
    let answer = HTTPResult.json(
      #"{"Status":0,"Question":{"name":"www.example.com.","type":1},"#
        + #""Answer":[{"name":"www.example.com.","TTL":300,"type":1,"data":"192.0.2.7"}]}"#)
    let scene = ProviderScene(
      [Scene.always(answer)], .tested(name: "first", unitsPerDay: 12),
      dialect: AliDNSDialect(account: nil, isEncrypted: true))
    for _ in 0..<10 { scene.ask() }
    #expect(scene.servers[0].sent.count == 3)
    #expect(scene.provider.counters.values.units == 15)
    #expect(scene.ask().failure?.consequence == .notAsked)
    scene.loop.advance(by: .seconds(86_400))
    #expect(scene.ask().isAnswer)
  }

  /// A provider of five units a request, and five a day, whose request takes a second.
  private func ofFiveUnits(_ loop: SimulatedLoop = SimulatedLoop(), ledger: UnitLedger? = nil) -> ProviderScene {
    ProviderScene(
      on: loop, [Scene.always(ProviderLimitTests.good, after: .seconds(1))], .tested(name: "first", unitsPerDay: 5),
      dialect: AliDNSDialect(account: nil, isEncrypted: true), ledger: ledger)
  }

  @Test func `what is in flight at a reload counts for the provider after it`() {
    let before = ofFiveUnits()
    let after = ofFiveUnits(before.loop)
    before.begin(www)
    before.loop.settle()
    before.provider.retire(for: after.provider)
    #expect(after.ask().failure?.consequence == .notAsked)
    before.loop.advance(by: .seconds(2))
    #expect(after.provider.counters.values.units == 5 && after.provider.limits.unitsInFlight == 0)
    #expect(after.ask().failure?.consequence == .notAsked)
    #expect(before.servers[0].sent.count == 1 && after.servers[0].sent.isEmpty)
  }

  @Test func `what is in flight when a provider is removed counts if it comes back`() {
    let loop = SimulatedLoop()
    let folder = TemporaryFolder()
    let ledger = UnitLedger(StateFile(path: folder.path(of: "units")) { _ in }, on: loop)
    let before = ofFiveUnits(loop, ledger: ledger)
    before.provider.start()
    before.begin(www)
    loop.settle()
    before.provider.retire(for: nil)
    loop.advance(by: .seconds(2))
    #expect(ledger.budget(of: "first", perDay: 5).spent == 5)
    #expect(ofFiveUnits(loop, ledger: ledger).ask().failure?.consequence == .notAsked)
  }

  @Test func `questions that wait for a server's name keep to the day's units`() {
    let scene = ProviderScene(
      [Scene.always(ProviderLimitTests.good)], .tested(name: "first", unitsPerDay: 5),
      dialect: AliDNSDialect(account: nil, isEncrypted: true), lookUp: .milliseconds(200))
    let results = scene.askAtOnce((0..<20).map { "n\($0).example" })
    #expect(scene.servers[0].sent.count == 1)
    #expect(results.count { $0.failure?.consequence == .notAsked } == 19)
  }

  @Test func `the time is asked for within the day's units, and ever more seldom`() {
    // The machine's clock is before the day of the build, and no reply says what time it is.
    let scene = ProviderScene(
      [Scene.always(ProviderLimitTests.good)], .tested(name: "first", unitsPerDay: 50),
      dialect: AliDNSDialect(account: nil, isEncrypted: true),
      certificateClock: CertificateClock(buildTime: 2_000_000_000) { 0 })
    let question = HTTPDNSQuestion(name: DomainName(text: www)!, type: .a)
    #expect(scene.provider.reasonToSkip(question, mayFallBack: false) { true } == nil)
    for _ in 0..<3600 {
      #expect(scene.provider.reasonToSkip(question, mayFallBack: true) { true } == .noTime)
      scene.loop.advance(by: .seconds(1))
    }
    // After 5, 10, 20, 40, 60 s and so on, and the next question, until the units are used up.
    let times = scene.servers[0].sent.map { Int(($0.at - scene.servers[0].sent[0].at).components.seconds) }
    #expect(zip(times.dropFirst(), times).map { $0 - $1 }.prefix(6) == [6, 11, 21, 41, 61, 61])
    #expect(scene.provider.counters.values.units <= 50)
  }

  @Test(arguments: [true, false])
  func `each time that a request was put on the wire is paid for`(isAnswered: Bool) {
    var failure = HTTPFailure(.reset, "cut off")
    failure.timesSent = 3
    let answer = HTTPResponse(
      status: 200, contentType: "application/dns-json",
      body: Array(#"{"Status":0,"Question":{"name":"www.example.com.","type":1},"Answer":[]}"#.utf8), timesSent: 3)
    let scene = ProviderScene(
      [{ [failure] number in (isAnswered || number > 0 ? .response(answer) : .failure(failure), .milliseconds(10)) }],
      .tested(name: "first", unitsPerDay: 1000), dialect: AliDNSDialect(account: nil, isEncrypted: true))
    scene.ask()
    #expect(scene.provider.counters.values.units == (isAnswered ? 15 : 30))
  }

  @Test func `a request is sent once more within the day's units and the second's requests only`() {
    var repeats = 0
    let scene = ProviderScene(
      [Scene.always(ProviderLimitTests.empty)],
      .tested(name: "first", unitsPerDay: 40), dialect: AliDNSDialect(account: nil, isEncrypted: true))
    scene.servers[0].whileInFlight = { owner in
      while owner?.mayRepeat() == true { repeats += 1 }
    }
    #expect(scene.ask().isAnswer)
    // A request costs five units at most: that one, and seven repeats.
    #expect(repeats == 7)
    #expect(scene.provider.limits.unitsInFlight == 0)
    let slow = ProviderScene(
      [Scene.always(ProviderLimitTests.empty)], .tested(name: "first", requestsPerSecond: 3),
      dialect: AliDNSDialect(account: nil, isEncrypted: true))
    slow.servers[0].whileInFlight = scene.servers[0].whileInFlight
    repeats = 0
    #expect(slow.ask().isAnswer)
    #expect(repeats == 2)
  }

  @Test func `near the end of a day's units new names are refused, and known ones are still asked for`() {
    let scene = ProviderScene(
      [Scene.always(ProviderLimitTests.empty)], .tested(name: "first", unitsPerDay: 50, unitsReserve: 0.2),
      dialect: AliDNSDialect(account: nil, isEncrypted: true))
    for _ in 0..<8 {
      #expect(scene.provider.limits.refusalOfNewNames() == nil)
      #expect(scene.ask().isAnswer)
    }
    let question = HTTPDNSQuestion(name: DomainName(text: www)!, type: .a)
    for mayFallBack in [true, false] {
      let refusal = scene.provider.reasonToSkip(question, mayFallBack: mayFallBack) { false }
      #expect(refusal?.reason.contains("units_reserve (10)") == true)
      #expect(scene.provider.reasonToSkip(question, mayFallBack: mayFallBack) { true } == nil)
    }
    #expect(scene.provider.counters.values.refusals == 2)
    #expect(successes(scene.askAtOnce([www, www])) == 2)
    // Where nothing is left at all it says so itself.
    #expect(scene.provider.limits.refusalOfNewNames() == nil)
    // The line about the limit has been logged once, so the refusals that follow are not.
    let refusal = scene.ask().failure
    #expect(refusal?.isLogged == true && refusal?.reason == "units_per_day (50) used up; resets at 00:00 UTC")
    #expect(scene.notes.all.filter { $0.contains("100 % of units_per_day (50) used") }.count == 1)
  }

  @Test func `a burst with a wrong clock is signed again as a whole, and begins no pause`() {
    let loop = SimulatedLoop()
    let scene = ProviderScene(
      on: loop,
      [
        { number in
          let isRefused = number < 10
          let body =
            isRefused
            ? #"{"code":"SignatureExpired"}"# : #"{"host":"www.example.com","ips":["192.0.2.7"],"ttl":300}"#
          let response = HTTPResponse(
            status: isRefused ? 403 : 200, contentType: "application/json", date: loop.wallTime + 90_000,
            body: Array(body.utf8))
          return (.response(response), .milliseconds(10))
        }
      ], dialect: EMASDialect(accountID: "100000", secretKey: Secret("key"), isEncrypted: true))
    #expect(successes(scene.askAtOnce(Array(repeating: www, count: 10))) == 10)
    #expect(scene.ask().isAnswer)
    #expect(scene.servers[0].sent.count == 21)
    #expect(scene.notes.all.isEmpty)
  }
}
