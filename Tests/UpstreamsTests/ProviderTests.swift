// ProviderTests.swift -- which server of a provider is asked, how often, for how long, and when the next one is.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ProviderTests {
  let loop = SimulatedLoop()
  private let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)

  private func server(
    _ result: HTTPResult, after latency: Duration = .milliseconds(10)
  ) -> ScriptedTransport {
    ScriptedTransport(on: loop) { _ in (result, latency) }
  }

  private func provider(_ servers: [ScriptedTransport], attemptsBeforeSwitch: Int = 3) -> HTTPDNSProvider {
    HTTPDNSProvider(
      Configuration.Provider.tested(name: "first", hasAccount: true, attemptsBeforeSwitch: attemptsBeforeSwitch),
      dialect: JSONDialect(flavour: .generic, path: "/resolve"),
      servers: servers.enumerated().map { number, transport in
        ProviderServer("server\(number)", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in transport }
      },
      loop: loop)
  }

  private func ask(
    _ provider: HTTPDNSProvider, within time: Duration = .milliseconds(4400)
  ) -> Result<UpstreamAnswer, UpstreamFailure> {
    return loop.run { [loop, question] in await provider.ask(question, deadline: loop.now + time, isLastResort: true) }
  }

  private func failure(_ result: Result<UpstreamAnswer, UpstreamFailure>) -> UpstreamFailure? {
    if case .failure(let failure) = result { failure } else { nil }
  }

  @Test func `a question is sent to the first server, which answers`() throws {
    let servers = [server(.address("192.0.2.7")), server(.refused)]
    let answer = try ask(provider(servers)).get()
    #expect(answer.server == "server0")
    #expect(answer.answer.answers.map(\.rdata) == [[192, 0, 2, 7]])
    #expect(servers.map(\.sent.count) == [1, 0])
    #expect(servers[0].sent[0].request.target == "/resolve?name=www.example.com&type=1")
    #expect(servers[0].sent[0].timeout == .seconds(2))
  }

  @Test func `within one question the next server is tried, and none twice`() {
    let servers = [server(.refused), server(.refused)]
    for attempts in [1, 2, 3] {
      let before = servers.map(\.sent.count)
      #expect(failure(ask(provider(servers, attemptsBeforeSwitch: attempts)))?.extendedError == .networkError)
      #expect(servers.map(\.sent.count) == before.map { $0 + 1 })
    }
  }

  @Test func `one question is sent to three servers at most`() {
    let servers = (0..<5).map { _ in server(.refused) }
    _ = ask(provider(servers))
    #expect(servers.map(\.sent.count) == [1, 1, 1, 0, 0])
  }

  @Test func `after attempts_before_switch failures questions begin with the next server`() throws {
    let servers = [server(.refused), server(.address("192.0.2.8"))]
    let provider = provider(servers)
    for _ in 0..<3 { #expect(try ask(provider).get().server == "server1") }
    #expect(servers.map(\.sent.count) == [3, 3])
    for _ in 0..<3 { #expect(try ask(provider).get().server == "server1") }
    #expect(servers.map(\.sent.count) == [3, 6])
  }

  @Test func `a success in between restarts the count`() throws {
    let flaky = ScriptedTransport(on: loop) { number in
      (number % 3 == 2 ? .address("192.0.2.7") : .refused, .milliseconds(10))
    }
    let other = server(.address("192.0.2.8"))
    let provider = provider([flaky, other])
    for _ in 0..<9 { _ = try ask(provider).get() }
    #expect(flaky.sent.count == 9)
    #expect(other.sent.count == 6)
  }

  @Test func `a silent server has its timeout, the next one the rest, and the deadline holds`() throws {
    let silent = (0..<3).map { _ in server(.address("192.0.2.7"), after: .seconds(60)) }
    let begin = loop.now
    #expect(failure(ask(provider(silent)))?.extendedError == .networkError)
    #expect(loop.now - begin == .milliseconds(4400))
    #expect(silent.map { $0.sent.first?.timeout } == [.seconds(2), .seconds(2), .milliseconds(400)])
  }

  @Test func `a server that was not given its time has not failed`() throws {
    let slow = server(.address("192.0.2.7"), after: .milliseconds(500))
    let provider = provider([slow, server(.address("192.0.2.8"))], attemptsBeforeSwitch: 1)
    #expect(failure(ask(provider, within: .milliseconds(300))) != nil)
    #expect(try ask(provider).get().server == "server0")
  }

  @Test func `with too little time nothing is sent`() {
    let servers = [server(.address("192.0.2.7"))]
    #expect(failure(ask(provider(servers), within: .milliseconds(99)))?.extendedError == .noReachableAuthority)
    #expect(failure(ask(provider(servers), within: .seconds(-1))) != nil)
    #expect(servers[0].sent.isEmpty)
  }

  @Test(
    arguments: [
      (.status(401), 1), (.status(403), 1), (.status(429), 1), (.status(400), 5), (.status(404), 5),
      (.failure(HTTPFailure(.busy, "too many")), 5),
    ] as [(HTTPResult, Int)])
  func `a refusal that applies to the account is not retried at other servers`(
    result: HTTPResult, transfers: Int
  ) {
    let servers = [server(result), server(.address("192.0.2.8"))]
    let provider = provider(servers, attemptsBeforeSwitch: 1)
    for _ in 0..<5 { #expect(failure(ask(provider))?.extendedError == .other) }
    #expect(servers.map(\.sent.count) == [transfers, 0])
  }

  @Test(
    arguments: [
      .status(500), .status(302), .json("{"), .json(#"{"Status":0,"Question":[{"name":"other.example","type":1}]}"#),
      .failure(HTTPFailure(.certificate, "expired")), .failure(HTTPFailure(.reset, "reset")),
    ] as [HTTPResult])
  func `one server's failure leads to the next server`(result: HTTPResult) throws {
    let servers = [server(result), server(.address("192.0.2.8"))]
    #expect(try ask(provider(servers)).get().server == "server1")
  }

  @Test func `data that cannot be read makes the type unserved`() {
    let svcb = HTTPResult.json(
      #"{"Status":0,"Answer":[{"name":"www.example.com.","type":65,"TTL":300,"data":"mandatory nonsense ="}]}"#)
    let servers = [server(svcb), server(svcb)]
    let provider = provider(servers)
    let result = loop.run { [loop] in
      await provider.ask(
        HTTPDNSQuestion(name: name("www.example.com"), type: .https), deadline: loop.now + .seconds(4),
        isLastResort: true)
    }
    #expect(failure(result)?.extendedError == .notSupported)
    #expect(servers.map(\.sent.count) == [1, 0])
  }

  @Test func `simultaneous failures ask no server twice`() {
    let servers = (0..<3).map { number in server(.refused, after: .milliseconds(10 + 7 * number)) }
    let provider = provider(servers, attemptsBeforeSwitch: 1)
    for _ in 0..<10 {
      let before = servers.map(\.sent.count)
      loop.run { [loop, question] in
        let tasks = (0..<2).map { _ in
          Task(executorPreference: loop) {
            _ = await provider.ask(question, deadline: loop.now + .seconds(4), isLastResort: true)
          }
        }
        for task in tasks { await task.value }
      }
      #expect(servers.map(\.sent.count) == before.map { $0 + 2 })
    }
  }

  @Test func `the reason of a failure does not contain the request's target`() throws {
    let results: [HTTPResult] = [.status(403), .status(500), .json("{"), .refused]
    for result in results {
      let reason = try #require(failure(ask(provider([server(result)])))).reason
      #expect(reason.hasPrefix("server0: "))
      #expect(!reason.contains("?") && !reason.contains("example"))
    }
  }
}
