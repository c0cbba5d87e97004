// ProviderLimitTests.swift -- what bursts, limits, long timeouts and wrong clocks make of a provider.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import Logging
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ProviderLimitTests {
  private let loop = SimulatedLoop()
  private let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
  private let notes = Notes()
  /// What is logged at level debug only.
  private let details = Notes()

  private func provider(
    _ servers: [ScriptedTransport],
    _ settings: Configuration.Provider = Configuration.Provider.tested(name: "first", hasAccount: true),
    dialect: any Dialect = JSONDialect(flavour: .generic, path: "/resolve")
  ) -> HTTPDNSProvider {
    HTTPDNSProvider(
      settings, dialect: dialect,
      servers: servers.enumerated().map { number, transport in
        ProviderServer("server\(number)", addresses: [IPAddress(text: "192.0.2.1")!], isVerified: true) { _ in transport
        }
      }, loop: loop
    ) { [notes, details] level, line in (level == .debug ? details : notes).add(line) }
  }

  private func server(_ script: @escaping (Int) -> HTTPResult) -> ScriptedTransport {
    ScriptedTransport(on: loop) { (script($0), .milliseconds(10)) }
  }

  /// Asks so many times at once.
  @discardableResult
  private func ask(_ provider: HTTPDNSProvider, times: Int = 1) -> [Result<UpstreamAnswer, UpstreamFailure>] {
    loop.run { [loop, question] in
      let tasks = (0..<times).map { _ in
        Task(executorPreference: loop) {
          await provider.ask(question, deadline: loop.now + .milliseconds(4400), isLastResort: false)
        }
      }
      var results: [Result<UpstreamAnswer, UpstreamFailure>] = []
      for task in tasks { results.append(await task.value) }
      return results
    }
  }

  private func successes(_ results: [Result<UpstreamAnswer, UpstreamFailure>]) -> Int {
    results.count { if case .success = $0 { true } else { false } }
  }

  @Test func `a refused burst is one refusal, logged in one line`() {
    let only = server { $0 < 50 ? .status(429) : .address("192.0.2.7") }
    let provider = provider([only])
    #expect(successes(ask(provider, times: 50)) == 0)
    #expect(notes.all.count == 1 && notes.all[0].contains("backing off for 5 s"))
    loop.advance(by: .seconds(5))
    #expect(successes(ask(provider)) == 1)
  }

  @Test func `an answer in flight does not end a quota's time`() {
    let busy = HTTPResult.response(HTTPResponse(status: 429, retryAfter: .seconds(17)))
    let only = ScriptedTransport(on: loop) { number in
      number == 0 ? (busy, .milliseconds(10)) : (.address("192.0.2.7"), .milliseconds(20))
    }
    let provider = provider([only])
    #expect(successes(ask(provider, times: 10)) == 9)
    loop.advance(by: .seconds(16))
    #expect(successes(ask(provider)) == 0)
    loop.advance(by: .seconds(1))
    #expect(successes(ask(provider)) == 1)
    #expect(only.sent.count == 11)
  }

  @Test func `each transfer counts for requests_per_second, the next server's too`() {
    let servers = [server { _ in .refused }, server { _ in .address("192.0.2.8") }]
    let provider = provider(
      servers, Configuration.Provider.tested(name: "first", attemptsBeforeSwitch: 100, requestsPerSecond: 3))
    #expect(successes(ask(provider)) == 1)
    guard case .failure(let failure)? = ask(provider).first else { return #expect(Bool(false), "two tokens of one") }
    #expect(failure.blame == .ourselves && failure.reason.contains("more than requests_per_second (3)"))
    #expect(servers.map(\.sent.count) == [2, 1])
    #expect(provider.counters.refusals == 1)
    loop.advance(by: .seconds(1))
    #expect(successes(ask(provider)) == 1)
  }

  @Test func `a probe counts against requests_per_second, and waits for it`() {
    let only = server { $0 < 2 ? .refused : .address("192.0.2.7") }
    let provider = provider(
      [only], Configuration.Provider.tested(name: "first", attemptsBeforeSwitch: 1, requestsPerSecond: 1))
    ask(provider)
    loop.advance(by: .milliseconds(4500))
    // Who is the last resort takes the only transfer of the second.
    let asked = loop.run { [loop, question] in
      await provider.ask(question, deadline: loop.now + .seconds(4), isLastResort: true)
    }
    #expect(successes([asked]) == 0)
    loop.advance(by: .milliseconds(600))
    #expect(only.sent.count == 2 && provider.counters.probes == 0)
    loop.advance(by: .seconds(5))
    #expect(only.sent.count == 3 && provider.counters.probes == 1)
    #expect(successes(ask(provider)) == 0)
    loop.advance(by: .seconds(1))
    #expect(successes(ask(provider)) == 1)
  }

  @Test func `near the end of a day's units new names are refused, and known ones are still asked for`() {
    let only = server { _ in .json(#"{"Status":0,"Question":{"name":"www.example.com.","type":1},"Answer":[]}"#) }
    let provider = provider(
      [only], Configuration.Provider.tested(name: "first", unitsPerDay: 50, unitsReserve: 0.2),
      dialect: AliDNSDialect(credential: nil, isEncrypted: true))
    for _ in 0..<8 {
      #expect(provider.refusalOfNewNames() == nil)
      #expect(successes(ask(provider)) == 1)
    }
    #expect(provider.refusalOfNewNames()?.reason.contains("units_reserve (10)") == true)
    #expect(successes(ask(provider, times: 2)) == 2)
    // Where nothing is left at all it says so itself.
    #expect(provider.refusalOfNewNames() == nil)
    let refused = ask(provider)
    #expect(successes(refused) == 0)
    // The line about the limit has been logged once, so the refusals that follow are not.
    guard case .failure(let refusal) = refused[0] else { return }
    #expect(refusal.isLogged && refusal.reason == "units_per_day (50) used up; resets at 00:00 UTC")
    #expect(notes.all.filter { $0.contains("100 % of units_per_day (50) used") }.count == 1)
  }

  @Test func `no probe is sent while the day's units are spent`() {
    let body = #"{"Status":0,"Question":{"name":"www.example.com.","type":1},"Answer":[]}"#
    let only = ScriptedTransport(on: loop) { number in
      number == 1
        ? (.failure(HTTPFailure(.refused, "refused", wasSent: true)), .milliseconds(20))
        : (.json(body), .milliseconds(10))
    }
    let provider = provider(
      [only], Configuration.Provider.tested(name: "first", attemptsBeforeSwitch: 1, unitsPerDay: 6),
      dialect: AliDNSDialect(credential: nil, isEncrypted: true))
    // The first one's answer spends what there is, the second one's failure brings the provider down.
    #expect(successes(ask(provider, times: 2)) == 1)
    let midnight = 86_400 - loop.wallTime % 86_400
    loop.advance(by: .seconds(midnight - 1))
    #expect(only.sent.count == 2)
    loop.advance(by: .seconds(10))
    #expect(only.sent.count == 3)
    #expect(provider.health.fitness(now: loop.now.nanoseconds) == .up)
  }

  @Test func `a probe whose question alone is refused counts as success`() {
    let truncated = HTTPResult.json(#"{"Status":0,"TC":true}"#)
    let only = server { $0 == 0 ? .refused : truncated }
    let provider = provider([only], Configuration.Provider.tested(name: "first", attemptsBeforeSwitch: 1))
    ask(provider)
    #expect(provider.health.fitness(now: loop.now.nanoseconds) == .down)
    loop.advance(by: .seconds(6))
    #expect(provider.health.fitness(now: loop.now.nanoseconds) == .up)
    #expect(provider.counters.probes == 1)
  }

  @Test func `a switch of servers, an outage and a recovery are each logged once at level debug`() {
    let isBack = Switch()
    let first = server { _ in isBack.isOn ? .address("192.0.2.7") : .refused }
    let second = server { $0 < 2 ? .address("192.0.2.7") : .refused }
    let provider = provider([first, second], Configuration.Provider.tested(name: "first", attemptsBeforeSwitch: 1))
    for _ in 0..<2 { #expect(successes(ask(provider)) == 1) }
    #expect(details.all == ["provider first: server1 is asked first"])
    for _ in 0..<3 { ask(provider) }
    let failed = ["provider first: server0 is asked first", "provider first: all of its servers are down"]
    #expect(details.all.dropFirst() == failed[...])
    isBack.isOn = true
    loop.advance(by: .seconds(6))
    #expect(details.all.last == "provider first: is back; server0 is asked first")
    #expect(details.all.count == 4)
    #expect(notes.all.isEmpty)
  }

  @Test func `a probe that is refused for the account goes to no other server, and the provider is not asked`() {
    let isBack = Switch()
    let first = server { _ in isBack.isOn ? .status(403) : .refused }
    let second = server { _ in .refused }
    let provider = provider([first, second], Configuration.Provider.tested(name: "first", attemptsBeforeSwitch: 1))
    ask(provider)
    isBack.isOn = true
    let before = second.sent.count
    loop.advance(by: .seconds(6))
    #expect(second.sent.count == before)
    let sent = first.sent.count
    loop.advance(by: .seconds(29))
    #expect(first.sent.count == sent)
    // Not being in use is not a recovery.
    #expect(details.all == ["provider first: server1 is asked first", "provider first: all of its servers are down"])
    #expect(notes.all.count == 1 && notes.all[0].contains("backing off for 30 s"))
  }

  @Test(arguments: [1, 2, 4, 5, 10])
  func `a provider goes down however long its timeout is`(_ timeout: Int) {
    let silent = ScriptedTransport(on: loop) { _ in (.refused, .seconds(60)) }
    let provider = provider([silent], Configuration.Provider.tested(name: "first", timeout: .seconds(timeout)))
    for _ in 0..<3 {
      #expect(provider.health.fitness(now: loop.now.nanoseconds) == .up)
      ask(provider)
    }
    #expect(provider.health.fitness(now: loop.now.nanoseconds) == .down)
  }

  @Test func `a burst with a wrong clock is signed again as a whole, and no provider is set aside`() {
    let emas = EMASDialect(accountID: "100000", secretKey: Secret("key"), isEncrypted: true)
    let expired = #"{"code":"SignatureExpired"}"#
    check(emas, expired: (403, expired), body: #"{"host":"www.example.com","ips":["192.0.2.7"],"ttl":300}"#)
  }

  @Test func `a refused signature is retried with the corrected clock`() {
    let alidns = AliDNSDialect(
      credential: .init(accountID: "1", accessKeyID: "2", accessKeySecret: Secret("3")), isEncrypted: true)
    let answer = #"[{"name":"www.example.com.","TTL":300,"type":1,"data":"192.0.2.7"}]"#
    check(
      alidns, expired: (401, ""),
      body: #"{"Status":0,"Question":{"name":"www.example.com.","type":1},"Answer":\#(answer)}"#)
  }

  /// Asks ten times at once by a clock that is wrong, and once more.
  private func check(_ dialect: any Dialect, expired: (status: Int, body: String), body: String) {
    let only = server { [loop] number in
      let (status, text) = number < 10 ? expired : (200, body)
      return .response(
        HTTPResponse(
          status: status, contentType: "application/json", date: loop.wallTime + 90_000, body: Array(text.utf8)))
    }
    let provider = provider([only], dialect: dialect)
    #expect(successes(ask(provider, times: 10)) == 10)
    #expect(successes(ask(provider)) == 1)
    #expect(only.sent.count == 21)
    #expect(notes.all.isEmpty)
  }
}

/// Something that a script looks at and a test changes.
private final class Switch: @unchecked Sendable {
  var isOn = false
}
