// ProviderTests.swift -- which server of a provider is asked, how often, for how long, and when the next one is.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Upstreams

@Suite struct ProviderTests {
  private typealias Scene = ProviderScene

  private func scene(
    _ servers: [(HTTPResult, Duration)], attemptsBeforeSwitch: Int = 3
  ) -> ProviderScene {
    ProviderScene(
      servers.map { Scene.always($0.0, after: $0.1) },
      .tested(name: "first", hasAccount: true, attemptsBeforeSwitch: attemptsBeforeSwitch))
  }

  private func scene(_ servers: [HTTPResult], attemptsBeforeSwitch: Int = 3) -> ProviderScene {
    scene(servers.map { ($0, .milliseconds(10)) }, attemptsBeforeSwitch: attemptsBeforeSwitch)
  }

  private let good = HTTPResult.address("192.0.2.7")

  @Test func `a question is sent to the first server, which answers`() throws {
    let scene = scene([good, .refused])
    let answer = try scene.ask().get()
    #expect(answer.server == "server0")
    #expect(answer.answer.answers.map(\.rdata) == [[192, 0, 2, 7]])
    #expect(scene.servers.map(\.sent.count) == [1, 0])
    #expect(scene.servers[0].sent[0].request.target == "/resolve?name=www.example.com&type=1")
    #expect(scene.servers[0].sent[0].timeout == .seconds(2))
  }

  @Test func `within one question the next server is tried, and none twice`() {
    let scene = scene([.json("{"), .json("{")])
    for number in 1...3 {
      #expect(scene.ask("n\(number).example").failure?.extendedError == .invalidData)
      #expect(scene.servers.map(\.sent.count) == [number, number])
    }
  }

  @Test func `one question costs three transfers at most`() {
    let scene = scene(Array(repeating: .json("{"), count: 5))
    scene.ask()
    #expect(scene.servers.map(\.sent.count) == [1, 1, 1, 0, 0])
  }

  @Test func `servers that cannot be reached cost no attempt and no time`() {
    let scene = ProviderScene(
      (0..<5).map { number in Scene.always(number < 4 ? .refused : good, after: .zero) })
    let begin = scene.loop.now
    #expect(scene.ask().server == "server4")
    #expect(scene.loop.now == begin)
    // They are left out from then on.
    for number in 0..<3 { #expect(scene.ask("n\(number).example").server == nil) }
    #expect(scene.servers.map(\.sent.count) == [1, 1, 1, 1, 4])
  }

  @Test func `after attempts_before_switch failures questions begin with the next server`() {
    let scene = scene([.json("{"), good])
    for _ in 0..<3 { #expect(scene.ask().server == "server1") }
    #expect(scene.servers.map(\.sent.count) == [3, 3])
    for _ in 0..<3 { #expect(scene.ask().server == "server1") }
    #expect(scene.servers.map(\.sent.count) == [3, 6])
    #expect(ProviderDemotion.allCases.map { scene.provider.report.counters.demotions[$0] } == [1, 0, 0])
  }

  @Test func `a silent server has its timeout, the next one the rest, and the deadline holds`() {
    let scene = ProviderScene([Scene.silent, Scene.silent, Scene.silent])
    let begin = scene.loop.now
    #expect(scene.ask().failure?.extendedError == .networkError)
    #expect(scene.loop.now - begin == .milliseconds(4400))
    #expect(scene.servers.map { $0.sent.first?.timeout } == [.seconds(2), .seconds(2), .milliseconds(400)])
  }

  @Test func `with too little time nothing is sent`() {
    let scene = scene([good])
    #expect(scene.ask(within: .milliseconds(99)).failure?.extendedError == .noReachableAuthority)
    #expect(scene.ask(within: .seconds(-1)).failure != nil)
    #expect(scene.servers[0].sent.isEmpty)
  }

  @Test(
    arguments: [
      .status(401), .status(403), .status(429), .status(400), .status(404), .json(#"{"Status":0,"TC":true}"#),
      .json(#"{"Status":0,"Question":[{"name":"other.example","type":1}]}"#),
      .failure(HTTPFailure(.tooLarge, "too long", wasSent: true)), .failure(HTTPFailure(.busy, "too many")),
    ] as [HTTPResult])
  func `a refusal or nonsense would be the same at other servers, and billed`(result: HTTPResult) {
    let scene = scene([result, good], attemptsBeforeSwitch: 1)
    for _ in 0..<5 { #expect(!scene.ask().isAnswer) }
    #expect(scene.servers.map(\.sent.count) == [5, 0])
  }

  @Test(
    arguments: [
      .status(500), .status(302), .json("{"), .failure(HTTPFailure(.certificate, "expired")),
      .failure(HTTPFailure(.reset, "reset", wasSent: true)), .failure(HTTPFailure(.timeout, "late", wasSent: true)),
    ] as [HTTPResult])
  func `one server's failure leads to the next server`(result: HTTPResult) {
    #expect(scene([result, good]).ask().server == "server1")
  }

  @Test(arguments: [HTTPResult.status(503), .failure(HTTPFailure(.reset, "reset", wasSent: true))])
  func `the only server has a second chance after a passing fault, and no third`(result: HTTPResult) {
    let scene = ProviderScene([{ ($0 % 3 < 2 ? result : .address("192.0.2.7"), .milliseconds(10)) }])
    #expect(!scene.ask().isAnswer)
    #expect(scene.servers[0].sent.count == 2)
    #expect(scene.ask().isAnswer)
  }

  @Test func `while a provider gives no verdicts, a question costs one transfer to each server`() {
    let scene = scene([.status(500), .status(500)])
    for number in 0..<3 { scene.ask("n\(number).example") }
    scene.loop.advance(by: .seconds(2))
    let sent = scene.servers.map(\.sent.count)
    scene.ask("n3.example")
    #expect(scene.servers.map(\.sent.count) == sent.map { $0 + 1 })
    #expect(scene.provider.pace.isSilent && scene.provider.pace.shortPatience == .milliseconds(150))
  }

  @Test(arguments: [Duration.milliseconds(10), .seconds(3600)])
  func `names that fail lead no other name to a server that says nothing`(time: Duration) {
    let scene = ProviderScene([Scene.silent, Scene.silent])
    scene.servers[0].reply = { name in
      name.hasPrefix("dead") ? (.status(500), time) : (.address("192.0.2.1", of: name), .milliseconds(30))
    }
    #expect(scene.ask().isAnswer)
    for number in 0..<20 {
      for part in 0..<5 { scene.begin("dead\(part).evil\(part).example") }
      scene.loop.advance(by: .milliseconds(3900))
      let begin = scene.loop.now
      #expect(scene.ask("www.site\(number).example").server == "server0")
      #expect(scene.loop.now - begin == .milliseconds(30))
    }
  }

  @Test func `during a silence a question asks each server, so that the one that lives is found by the first one`() {
    let scene = ProviderScene([Scene.silent, Scene.silent, Scene.silent])
    for number in 0..<5 { scene.begin("n\(number).example") }
    scene.loop.advance(by: .milliseconds(4400))
    scene.servers[2].reply = { (.address("192.0.2.1", of: $0), .milliseconds(30)) }
    let begin = scene.loop.now
    #expect(scene.ask("n5.example").server == "server2")
    #expect(scene.loop.now - begin == .milliseconds(330))
    #expect(scene.ask("n6.example").server == "server2")
    #expect(scene.loop.now - begin == .milliseconds(360))
  }

  @Test func `an abandoned question goes to no other server`() {
    let scene = scene([.json("{"), good])
    let asking = AbandonedQuestion()
    func ask() -> Bool {
      scene.loop.run {
        await scene.provider.ask(
          HTTPDNSQuestion(name: name("www.example.com"), type: .a), for: asking,
          deadline: scene.loop.now + .seconds(4), isLastResort: false
        ).isAnswer
      }
    }
    #expect(ask())
    #expect(scene.servers.map(\.sent.count) == [1, 1])
    // Another question gets its place while the first server has it.
    scene.servers[0].script = { _ in
      asking.isWanted = false
      return (.json("{"), .milliseconds(10))
    }
    #expect(!ask())
    #expect(scene.servers.map(\.sent.count) == [2, 1])
  }

  @Test func `data that cannot be read makes the type unserved`() {
    let svcb = HTTPResult.json(
      #"{"Status":0,"Answer":[{"name":"www.example.com.","type":65,"TTL":300,"data":"mandatory nonsense ="}]}"#)
    let scene = scene([svcb, svcb])
    let result = scene.loop.run {
      let question = HTTPDNSQuestion(name: name("www.example.com"), type: .https)
      return await scene.provider.ask(
        question, for: OwnQuestion(question.name, now: scene.loop.now), deadline: scene.loop.now + .seconds(4),
        isLastResort: true)
    }
    #expect(result.failure?.extendedError == .notSupported)
    #expect(scene.servers.map(\.sent.count) == [1, 0])
  }

  @Test func `the reason of a failure does not contain the request's target`() throws {
    for result in [.status(403), .status(500), .json("{"), .refused] as [HTTPResult] {
      let reason = try #require(scene([result]).ask().failure).reason
      #expect(reason.hasPrefix("server0: "))
      #expect(!reason.contains("?") && !reason.contains("example"))
    }
  }

  @Test func `a refusal has the HTTP status and a remedy, and so has a refused connection`() throws {
    for (result, text) in [
      (
        .status(400),
        "the provider refused the parameters (HTTP status 400); check servers, then the provider's other keys"
      ),
      (.status(403), "the provider refused the credentials (HTTP status 403); check token"),
      (
        .status(404),
        "the provider does not know the path (HTTP status 404); check servers: another service may listen there"
      ),
      (.refused, "refused: refused; nothing listens there, or a firewall refuses; check servers"),
    ] as [(HTTPResult, String)] {
      let failure = try #require(scene([result]).ask().failure)
      #expect(failure.explanation == "server0: \(text)")
      #expect(failure.trail(of: "first").map(\.description) == ["first: server0: \(text)"])
    }
  }
}

/// A question that loses its place.
private final class AbandonedQuestion: QuestionInFlight, @unchecked Sendable {
  let client = OwnQuestion(name("www.example.com"), now: BootInstant(nanoseconds: 0)).client
  let domain = OwnQuestion(name("www.example.com"), now: BootInstant(nanoseconds: 0)).domain
  let startedAt = BootInstant(nanoseconds: 1_000_000_000_000)
  var isWanted = true
  let hasNoClients = false
  func isCarried(by carrier: any QuestionCarrier) {}
  func wasCarried(by carrier: any QuestionCarrier) {}
  func gotConnection() {}
}
