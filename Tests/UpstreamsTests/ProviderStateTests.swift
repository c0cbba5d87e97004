// ProviderStateTests.swift -- a provider that is down, aside, at its limit, or has nothing for a name; and who comes along.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import MessageCache
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ProviderStateTests {
  private let loop = SimulatedLoop()
  private let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)

  private func provider(
    _ servers: [ScriptedTransport],
    settings: Configuration.Provider = Configuration.Provider.tested(name: "first", hasAccount: true),
    dialect: any Dialect = JSONDialect(flavour: .generic, path: "/resolve"), isVerified: Bool = true
  ) -> (HTTPDNSProvider, Notes) {
    let notes = Notes()
    let provider = HTTPDNSProvider(
      settings, dialect: dialect,
      servers: servers.enumerated().map { number, transport in
        ProviderServer("server\(number)", addresses: [IPAddress(text: "192.0.2.1")!], isVerified: isVerified) { _ in
          transport
        }
      }, loop: loop
    ) { notes.add($1) }
    return (provider, notes)
  }

  private func server(_ script: @escaping (Int) -> HTTPResult) -> ScriptedTransport {
    ScriptedTransport(on: loop) { (script($0), .milliseconds(10)) }
  }

  @discardableResult
  private func ask(
    _ provider: HTTPDNSProvider, _ question: HTTPDNSQuestion? = nil, isLastResort: Bool = false
  ) -> Result<UpstreamAnswer, UpstreamFailure> {
    let question = question ?? self.question
    return loop.run { [loop] in
      await provider.ask(question, deadline: loop.now + .milliseconds(4400), isLastResort: isLastResort)
    }
  }

  private func isSuccess(_ result: Result<UpstreamAnswer, UpstreamFailure>) -> Bool {
    if case .success = result { true } else { false }
  }

  @Test func `a provider whose servers all failed is skipped until a probe succeeds`() {
    let isBack = Flag()
    let servers = (0..<2).map { _ in server { _ in isBack.value ? .address("192.0.2.7") : .refused } }
    let (provider, _) = provider(servers)
    for _ in 0..<2 { ask(provider) }
    let sent = servers.map(\.sent.count)
    let began = loop.now
    for _ in 0..<100 { #expect(!isSuccess(ask(provider))) }
    #expect(loop.now == began)
    #expect(provider.report.demotions[.down] == 1)
    #expect(provider.report.demotions[.aside] == 0)
    #expect(servers.map(\.sent.count) == sent)
    // The first probe finds it down, the second one up.
    loop.advance(by: .seconds(6))
    #expect(servers.map(\.sent.count) == sent.map { $0 + 1 })
    isBack.value = true
    #expect(!isSuccess(ask(provider)))
    loop.advance(by: .seconds(10))
    #expect(isSuccess(ask(provider)))
    #expect(provider.counters.probes == 3)
  }

  @Test func `a server that has failed often enough is put behind the next one, and that is counted`() {
    let servers = [server { _ in .refused }, server { _ in .address("192.0.2.7") }]
    let (provider, _) = provider(
      servers, settings: Configuration.Provider.tested(name: "first", attemptsBeforeSwitch: 2))
    for _ in 0..<5 { #expect(isSuccess(ask(provider))) }
    #expect(servers.map(\.sent.count) == [2, 5])
    #expect(ProviderDemotions.Kind.allCases.map { provider.report.demotions[$0] } == [1, 0, 0])
  }

  @Test func `an abandoned question goes to no other server`() {
    let servers = [server { _ in .refused }, server { _ in .address("192.0.2.7") }]
    let (provider, _) = provider(servers)
    let isWanted = Flag()
    func ask() -> Result<UpstreamAnswer, UpstreamFailure> {
      loop.run { [loop, question] in
        await provider.ask(
          question, deadline: loop.now + .milliseconds(4400), isLastResort: false, isWanted: { isWanted.value })
      }
    }
    isWanted.value = true
    #expect(isSuccess(ask()))
    #expect(servers.map(\.sent.count) == [1, 1])
    // Somebody else gets its place while the first server has it.
    servers[0].script = { _ in
      isWanted.value = false
      return (.refused, .milliseconds(10))
    }
    #expect(!isSuccess(ask()))
    #expect(servers.map(\.sent.count) == [2, 1])
  }

  @Test func `a provider that goes down on its second server is probed within seconds too`() {
    let isBack = Flag()
    let first = server { _ in isBack.value ? .address("192.0.2.7") : .refused }
    let second = server { $0 == 0 ? .address("192.0.2.8") : .refused }
    let (provider, _) = provider(
      [first, second], settings: Configuration.Provider.tested(name: "first", attemptsBeforeSwitch: 1))
    #expect(isSuccess(ask(provider)))
    loop.advance(by: .seconds(1))
    #expect(!isSuccess(ask(provider)))
    isBack.value = true
    #expect(!isSuccess(ask(provider)))
    loop.advance(by: .seconds(6))
    #expect((try? ask(provider).get().server) == "server0")
  }

  @Test func `the last resort is asked although it is down`() {
    let isBack = Flag()
    let only = server { _ in isBack.value ? .address("192.0.2.7") : .refused }
    let (provider, _) = provider(
      [only], settings: Configuration.Provider.tested(name: "first", attemptsBeforeSwitch: 1))
    ask(provider)
    isBack.value = true
    #expect(!isSuccess(ask(provider)))
    #expect(isSuccess(ask(provider, isLastResort: true)))
    #expect(isSuccess(ask(provider)))
  }

  @Test func `a probe leads back to the first server, and no client's question is spent on it`() {
    let isBack = Flag()
    let first = server { _ in isBack.value ? .address("192.0.2.1") : .refused }
    let second = server { _ in .address("192.0.2.2") }
    let (provider, _) = provider(
      [first, second],
      settings: Configuration.Provider.tested(name: "first", attemptsBeforeSwitch: 1, returnToFirst: .seconds(60)))
    for _ in 0..<5 { #expect(isSuccess(ask(provider))) }
    #expect(first.sent.count == 1)
    loop.advance(by: .seconds(61))
    #expect(first.sent.count == 2)
    isBack.value = true
    loop.advance(by: .seconds(60))
    #expect(first.sent.count == 3)
    #expect((try? ask(provider).get().server) == "server0")
  }

  @Test func `refused credentials put the provider aside and log a remedy`() {
    let (refusing, notes) = provider([server { $0 < 2 ? .status(403) : .address("192.0.2.7") }])
    ask(refusing)
    #expect(notes.all.count == 1)
    #expect(notes.all[0].contains("provider first: the provider refused the credentials; backing off for 30 s"))
    ask(refusing)
    loop.advance(by: .seconds(30))
    ask(refusing)
    #expect(notes.all.last?.contains("backing off for 60 s") == true)
    loop.advance(by: .seconds(59))
    #expect(!isSuccess(ask(refusing)))
    loop.advance(by: .seconds(1))
    #expect(isSuccess(ask(refusing)))
    #expect(refusing.counters.transfers == 3)
  }

  @Test func `a refusal has the HTTP status and a remedy, and so has a refused connection`() {
    for (status, text) in [
      (400, "the provider refused the parameters (HTTP status 400); check servers, then the provider's other keys"),
      (403, "the provider refused the credentials (HTTP status 403); check token"),
      (404, "the provider does not know the path (HTTP status 404); check servers: another service may listen there"),
    ] {
      let (refusing, _) = provider([server { _ in .status(status) }])
      guard case .failure(let failure) = ask(refusing) else {
        Issue.record("an answer")
        continue
      }
      #expect(failure.explanation == "server0: \(text)")
      #expect(failure.trail(of: "first").map(\.description) == ["first: server0: \(text)"])
    }
    let (unreachable, _) = provider([server { _ in .refused }])
    guard case .failure(let failure) = ask(unreachable) else {
      Issue.record("an answer")
      return
    }
    #expect(
      failure.trail(of: "first").map(\.description) == [
        "first: server0: refused: refused; nothing listens there, or a firewall refuses; check servers"
      ])
  }

  @Test func `simultaneous refusals count once`() {
    let (refusing, notes) = provider([server { _ in .status(401) }])
    loop.run { [loop, question] in
      let tasks = [RecordType.a, .aaaa].map { type in
        Task(executorPreference: loop) {
          let question = HTTPDNSQuestion(name: question.name, type: type)
          return await refusing.ask(question, deadline: loop.now + .milliseconds(4400), isLastResort: false)
        }
      }
      for task in tasks { _ = await task.value }
    }
    #expect(refusing.counters.transfers == 2)
    #expect(notes.all.count == 1 && notes.all[0].contains("backing off for 30 s"))
  }

  @Test func `a wrong clock that looks like wrong credentials is corrected or named`() {
    func ask(isVerified: Bool) -> (isSuccess: Bool, transfers: Int, notes: [String]) {
      let signing = AliDNSDialect(
        credential: .init(accountID: "1", accessKeyID: "2", accessKeySecret: Secret("3")), isEncrypted: isVerified)
      let wallTime = loop.wallTime
      let only = server { number in
        let body =
          #"{"Status":0,"Question":{"name":"www.example.com.","type":1},"#
          + #""Answer":[{"name":"www.example.com.","TTL":300,"type":1,"data":"192.0.2.7"}]}"#
        return number > 0 ? .json(body) : .response(HTTPResponse(status: 401, date: wallTime + 5_000))
      }
      let (provider, notes) = provider([only], dialect: signing, isVerified: isVerified)
      return (isSuccess(self.ask(provider)), only.sent.count, notes.all)
    }
    let corrected = ask(isVerified: true)
    #expect(corrected.isSuccess && corrected.transfers == 2 && corrected.notes.isEmpty)
    let named = ask(isVerified: false)
    #expect(!named.isSuccess && named.transfers == 1)
    let advice = "set the machine's clock, which differs from the provider's by 5000 s"
    #expect(named.notes.first?.hasSuffix(advice) == true)
  }

  @Test func `a quota holds for as long as the provider says`() {
    let busy = HTTPResult.response(HTTPResponse(status: 429, retryAfter: .seconds(17)))
    let (provider, _) = provider([server { $0 == 0 ? busy : .address("192.0.2.7") }])
    ask(provider)
    loop.advance(by: .seconds(16))
    #expect(!isSuccess(ask(provider)))
    loop.advance(by: .seconds(1))
    #expect(isSuccess(ask(provider)))
  }

  @Test func `transfers beyond requests_per_second fail without being remembered`() {
    let only = server { _ in .address("192.0.2.7") }
    let (provider, _) = provider([only], settings: Configuration.Provider.tested(name: "first", requestsPerSecond: 2))
    var failures = 0
    for _ in 0..<400 {
      if case .failure(let failure) = ask(provider) {
        #expect(failure.blame == .ourselves)
        failures += 1
        loop.advance(by: .milliseconds(10))
      }
    }
    let seconds = Int((loop.now - BootInstant(nanoseconds: 1_000_000_000_000)).nanoseconds / 1_000_000_000)
    #expect(only.sent.count <= 2 * (seconds + 1) + 2)
    #expect(only.sent.count >= 2 * seconds)
    #expect(failures > 100)
  }

  @Test func `a day's units are spent once, and the next day is a new one`() {
    let only = server { _ in .address("192.0.2.7") }
    let dialect = AliDNSDialect(credential: nil, isEncrypted: true)
    let (provider, _) = provider(
      [only], settings: Configuration.Provider.tested(name: "first", unitsPerDay: 12), dialect: dialect)
    let body = #"{"Status":0,"Question":{"name":"www.example.com.","type":1},"#
    only.script = { _ in
      (.json(body + #""Answer":[{"name":"www.example.com.","TTL":300,"type":1,"data":"192.0.2.7"}]}"#), .zero)
    }
    for _ in 0..<10 { ask(provider) }
    #expect(only.sent.count == 3)
    #expect(provider.counters.units == 15)
    loop.advance(by: .seconds(86_400))
    #expect(isSuccess(ask(provider)))
  }

  @Test func `an empty answer that may mean "not in the list" is not paid for again, until it is forgotten`() throws {
    let only = server { _ in .json("[]") }
    let dialect = AliDNSDialect(credential: nil, form: .short, isEncrypted: true)
    let (remembering, _) = provider([only], dialect: dialect)
    for _ in 0..<10 { #expect(try ask(remembering).get().answer.isEmptyAmbiguous) }
    #expect(only.sent.count == 1)
    #expect(remembering.counters.notListed == 9)
    loop.advance(by: .seconds(600))
    ask(remembering)
    #expect(only.sent.count == 2)
    remembering.forgetNotListed(.everything)
    ask(remembering)
    #expect(only.sent.count == 3)
    // Where empty answers are taken at their word there is nothing to remember.
    let (believing, _) = provider(
      [only], settings: Configuration.Provider.tested(name: "first", fallsBackOnEmpty: false), dialect: dialect)
    for _ in 0..<2 { #expect(try !ask(believing).get().answer.isEmptyAmbiguous) }
    #expect(believing.counters.transfers == 2)
  }

  @Test func `the clock is learned from authenticated responses only`() {
    func ask(isVerified: Bool) -> [String] {
      let signing = AliDNSDialect(
        credential: .init(accountID: "1", accessKeyID: "2", accessKeySecret: Secret("3")), isEncrypted: isVerified)
      let wallTime = loop.wallTime
      let only = server { _ in
        .response(HTTPResponse(status: 200, contentType: "text/html", date: wallTime + 5_000))
      }
      let (provider, _) = provider([only], dialect: signing, isVerified: isVerified)
      for _ in 0..<2 { self.ask(provider, isLastResort: true) }
      return only.sent.map { sent in
        String(sent.request.target.split(separator: "ts=")[1].prefix { $0 != "&" })
      }
    }
    let learned = ask(isVerified: true)
    #expect(Int64(learned[1])! - Int64(learned[0])! >= 4_990)
    let unlearned = ask(isVerified: false)
    #expect(Int64(unlearned[1])! - Int64(unlearned[0])! < 10)
  }
}

/// Something that a script looks at and a test changes.
private final class Flag: @unchecked Sendable {
  var value = false
}
