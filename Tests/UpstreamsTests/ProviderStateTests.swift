// ProviderStateTests.swift -- a provider that cannot be reached, is silent, pauses or is at its limit, and what ends that.

import Ciphers
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import TestSupport
import Testing

@testable import Configuration
@testable import ForwarderTestSupport
@testable import Upstreams

@Suite struct ProviderStateTests {
  private typealias Scene = ProviderScene

  private static let good = HTTPResult.address("192.0.2.7")
  private let good = ProviderStateTests.good

  /// Servers that refuse connections until they are back.
  private func refusing(_ count: Int, until isBack: TestFlag) -> ProviderScene {
    let scene = ProviderScene(
      (0..<count).map { _ in { _ in (isBack.isOn ? ProviderStateTests.good : .refused, .milliseconds(1)) } })
    for server in scene.servers {
      server.handshakes = { _ in (isBack.isOn ? nil : HTTPFailure(.refused, "refused"), .milliseconds(1)) }
    }
    return scene
  }

  // MARK: Servers that cannot be reached

  @Test func `no client waits for a provider whose servers refuse connections, and it is back within a second`() {
    let isBack = TestFlag()
    let scene = refusing(2, until: isBack)
    scene.ask()
    let sent = scene.servers.map(\.sent.count)
    let begin = scene.loop.now
    for number in 0..<100 {
      let failure = scene.ask("n\(number).example").failure
      #expect(failure?.consequence == .notAsked)
      #expect(failure?.reason == "unreachable: server1 and the others: refused: refused")
    }
    #expect(scene.loop.now == begin)
    #expect(scene.servers.map(\.sent.count) == sent)
    #expect(scene.provider.report.state.word == "down")
    #expect(ProviderDemotion.allCases.map { scene.provider.report.counters.demotions[$0] } == [1, 1, 0])
    isBack.isOn = true
    scene.loop.advance(by: .seconds(1) + .milliseconds(2))
    #expect(scene.ask().isAnswer)
    #expect(scene.recoveries == 1)
    #expect(scene.provider.report.state == .up)
  }

  @Test func `handshakes are not billed and no transfers`() {
    let scene = refusing(1, until: TestFlag())
    scene.ask()
    scene.loop.advance(by: .seconds(60))
    #expect(scene.provider.counters.values.transfers == 0)
    #expect((58...60).contains(scene.provider.counters.values.handshakes))
    #expect(scene.provider.counters.values.units == 0)
  }

  @Test func `a server that swallows everything is left out within 1.3 s, and its questions go on`() {
    let scene = ProviderScene([{ $0 == 0 ? (ProviderStateTests.good, .milliseconds(10)) : (.refused, .seconds(3600)) }])
    scene.servers[0].handshakes = { _ in (nil, .seconds(3600)) }
    #expect(scene.ask().isAnswer)
    scene.loop.advance(by: .milliseconds(1))
    let begin = scene.loop.now
    let failure = scene.ask().failure
    #expect(scene.loop.now - begin == .milliseconds(1300))
    #expect(failure?.consequence == .notAsked)
    #expect(scene.servers[0].losses == 1)
    #expect(
      scene.provider.report.state == .unreachable(since: scene.loop.wallTime, "server0: timeout: no sign of life"))
  }

  @Test(arguments: [true, false])
  func `a server behind a long way has the time that its handshakes take`(isKnown: Bool) {
    // Three round trips of 600 ms for a connection, one for a question on it.
    let scene = ProviderScene([
      { (ProviderStateTests.good, .milliseconds($0 == 0 || isKnown ? 600 : 1800)) }
    ])
    scene.servers[0].handshakes = { _ in (nil, .milliseconds(1800)) }
    if isKnown { #expect(scene.ask().isAnswer) }
    scene.servers[0].script = { _ in (ProviderStateTests.good, .milliseconds(1900)) }
    for _ in 0..<5 {
      scene.loop.advance(by: .milliseconds(1))
      #expect(scene.ask().isAnswer)
    }
    #expect(scene.servers[0].losses == 0 && !scene.servers[0].shaken.isEmpty)
  }

  @Test func `a server that is only slow with a name shakes hands and stays`() {
    let scene = ProviderScene([Scene.always(good, after: .milliseconds(1900))])
    #expect(scene.ask().isAnswer)
    #expect(scene.servers[0].shaken.count == 1)
    #expect(scene.servers[0].losses == 0)
  }

  @Test func `a server that answers other questions is not asked for handshakes`() {
    let scene = ProviderScene([
      { number in number == 0 ? (.refused, .seconds(3600)) : (ProviderStateTests.good, .milliseconds(10)) }
    ])
    scene.begin("slow.example")
    for _ in 0..<18 {
      scene.loop.advance(by: .milliseconds(100))
      #expect(scene.ask().isAnswer)
    }
    #expect(scene.servers[0].shaken.isEmpty)
  }

  @Test func `a connection that is refused beside a living one says nothing about the server`() {
    let scene = ProviderScene([{ number in (number == 1 ? .refused : ProviderStateTests.good, .milliseconds(10)) }])
    #expect(scene.ask().isAnswer)
    #expect(!scene.ask().isAnswer)
    #expect(scene.provider.report.state == .up)
    #expect(scene.ask().isAnswer)
    // Also where questions without answers have all living ones for a while, and handshakes are refused as well.
    scene.servers[0].isConnected = true
    scene.servers[0].handshakes = { _ in (HTTPFailure(.refused, "refused"), .milliseconds(10)) }
    scene.servers[0].script = { _ in (.refused, .seconds(3600)) }
    scene.loop.advance(by: .milliseconds(1))
    #expect(!scene.ask("dead.example", within: .seconds(2)).isAnswer)
    #expect(!scene.servers[0].shaken.isEmpty && scene.servers[0].losses == 0)
    scene.servers[0].script = { _ in (.refused, .milliseconds(10)) }
    scene.loop.advance(by: .seconds(5))
    #expect(!scene.ask().isAnswer)
    #expect(scene.provider.report.state == .up && scene.servers[0].losses == 0)
    scene.loop.advance(by: .seconds(5))
    #expect(!scene.ask().isAnswer)
    #expect(scene.servers[0].losses == 1)
  }

  @Test func `the last resort waits for a server that can be reached, within its time`() {
    let isBack = TestFlag()
    let scene = refusing(1, until: isBack)
    scene.ask()
    scene.loop.schedule(after: .milliseconds(2500)) { isBack.isOn = true }
    var begin = scene.loop.now
    #expect(scene.ask(isLastResort: true).isAnswer)
    #expect(scene.loop.now - begin < .milliseconds(3100))
    let other = refusing(1, until: TestFlag())
    other.ask()
    begin = other.loop.now
    #expect(!other.ask(isLastResort: true).isAnswer)
    #expect(other.loop.now - begin == .milliseconds(4300))
  }

  @Test func `a question makes a handshake at once if the last one is older than a second`() {
    let isBack = TestFlag()
    let scene = refusing(1, until: isBack)
    scene.ask()
    // After ten minutes without questions, handshakes are ten seconds apart.
    scene.loop.advance(by: .seconds(700))
    let shaken = scene.servers[0].shaken.count
    scene.loop.advance(by: .seconds(5))
    let idle = scene.servers[0].shaken.count - shaken
    #expect(idle <= 1)
    isBack.isOn = true
    scene.loop.advance(by: .seconds(2))
    scene.ask()
    scene.loop.advance(by: .milliseconds(5))
    #expect(scene.ask().isAnswer)
  }

  @Test func `another network ends that a server is left out`() {
    let scene = refusing(1, until: TestFlag())
    scene.ask()
    scene.provider.networkHasChanged()
    #expect(scene.provider.report.state == .up)
    #expect(scene.servers[0].renewals == 1)
  }

  @Test func `an outage and its end are logged once at level debug`() {
    let isBack = TestFlag()
    let scene = refusing(2, until: isBack)
    for _ in 0..<5 { scene.ask() }
    #expect(
      scene.details.all == [
        "provider first: server1 is asked first",
        "provider first: unreachable: server1 and the others: refused: refused",
      ])
    isBack.isOn = true
    scene.loop.advance(by: .seconds(2))
    #expect(scene.details.all.count == 3)
    #expect(scene.details.all.last == "provider first: is back; server0 is asked first")
    #expect(scene.notes.all.isEmpty)
  }

  // MARK: The order of servers

  @Test func `the first server gets one question after a handshake, and the present one after the short patience`() {
    let isBack = TestFlag()
    let scene = ProviderScene(
      [
        { _ in (isBack.isOn ? ProviderStateTests.good : .json("{"), .milliseconds(10)) },
        Scene.always(good, after: .milliseconds(20)),
      ], .tested(name: "first", attemptsBeforeSwitch: 1, returnToFirst: .seconds(60)))
    for _ in 0..<5 { #expect(scene.ask().server == "server1") }
    #expect(scene.servers[0].sent.count == 1)
    scene.loop.advance(by: .seconds(61))
    #expect(scene.servers[0].shaken.count == 1 && scene.servers[0].sent.count == 1)
    // It answers nonsense still: the question goes to the present server, the next ones as well.
    for _ in 0..<5 { #expect(scene.ask().server == "server1") }
    #expect(scene.servers[0].sent.count == 2)
    isBack.isOn = true
    scene.loop.advance(by: .seconds(61))
    for _ in 0..<5 { #expect(scene.ask().server == "server0") }
  }

  @Test func `no question waits for the first server for longer than the short patience`() {
    let scene = ProviderScene(
      [
        { $0 == 0 ? (.json("{"), .milliseconds(10)) : (ProviderStateTests.good, .milliseconds(900)) },
        Scene.always(good, after: .milliseconds(20)),
      ], .tested(name: "first", attemptsBeforeSwitch: 1, returnToFirst: .seconds(60)))
    #expect(scene.ask().server == "server1")
    scene.loop.advance(by: .seconds(61))
    for _ in 0..<3 {
      let begin = scene.loop.now
      #expect(scene.ask().server == "server1")
      #expect(
        scene.loop.now - begin
          == (scene.servers[0].sent.count == 2 && begin == scene.servers[0].sent[1].at
            ? .milliseconds(170) : .milliseconds(20)))
    }
    #expect(scene.servers[0].sent.count == 2)
  }

  // MARK: Silence

  @Test func `a provider that gives no verdicts is asked on, and one verdict ends the silence`() {
    let isBack = TestFlag()
    let scene = ProviderScene([
      { _ in isBack.isOn ? (ProviderStateTests.good, .milliseconds(10)) : (.status(403), .milliseconds(10)) }
    ])
    let since = scene.loop.wallTime
    for number in 0..<3 { scene.ask("n\(number).example") }
    #expect(scene.provider.report.state == .up && !scene.provider.pace.isSilent)
    scene.loop.advance(by: .seconds(2))
    #expect(scene.provider.report.state == .noAnswers(since: since))
    #expect(scene.provider.report.advice == "check token")
    #expect(scene.provider.pace.isSilent && scene.provider.pace.shortPatience == .milliseconds(150))
    scene.ask("n3.example")
    #expect(scene.details.all == ["provider first: no answers"])
    isBack.isOn = true
    #expect(scene.ask().isAnswer)
    #expect(scene.recoveries == 1)
    #expect(scene.provider.report.state == .up && !scene.provider.pace.isSilent && scene.isFit)
    #expect(scene.details.all.last == "provider first: is back; server0 is asked first")
  }

  @Test func `a refresh without a verdict makes the next ones wait five seconds, clients' questions do not`() {
    let isBack = TestFlag()
    let scene = ProviderScene([{ _ in (isBack.isOn ? ProviderStateTests.good : .status(429), .milliseconds(10)) }])
    func refresh() {
      scene.loop.run {
        let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
        _ = await scene.provider.refresh([question], deadline: scene.loop.now + .seconds(4))
      }
    }
    refresh()
    #expect(scene.isFit)
    for number in 0..<20 { scene.ask("n\(number).example") }
    #expect(scene.isFit)
    refresh()
    #expect(!scene.isFit)
    scene.loop.advance(by: .milliseconds(4999))
    #expect(!scene.isFit)
    scene.loop.advance(by: .milliseconds(1))
    #expect(scene.isFit)
    refresh()
    isBack.isOn = true
    #expect(!scene.isFit)
    scene.ask()
    #expect(scene.isFit)
  }

  // MARK: Pauses

  /// EMAS, which has error codes of its own.
  private func emas(_ script: @escaping Scene.Script) -> ProviderScene {
    ProviderScene(
      [script], dialect: EMASDialect(accountID: "100000", secretKey: Secret("key"), isEncrypted: true))
  }

  private static func code(_ text: String) -> HTTPResult {
    .response(
      HTTPResponse(status: 403, contentType: "application/json", body: Array(#"{"code":"\#(text)"}"#.utf8)))
  }

  private static let ips = HTTPResult.json(#"{"host":"www.example.com","ips":["192.0.2.7"],"ttl":300}"#)

  @Test func `the service's own word about the account begins a pause, which is logged with a remedy`() {
    let scene = emas { number in
      (number < 2 ? ProviderStateTests.code("InvalidSignature") : ProviderStateTests.ips, .milliseconds(10))
    }
    #expect(!scene.ask().isAnswer)
    #expect(scene.notes.all.count == 1)
    let line = "provider first: the provider refused the credentials; pausing for 30 s; check token"
    #expect(scene.notes.all.first == line)
    let failure = scene.ask().failure
    #expect(failure?.consequence == .notAsked && failure?.isLogged == true)
    #expect(failure?.reason == "pausing: the provider refused the credentials")
    #expect(scene.servers[0].sent.count == 1)
    #expect(
      scene.provider.report.state
        == .pausing("the provider refused the credentials", until: scene.loop.wallTime + 30))
    scene.loop.advance(by: .seconds(30))
    #expect(!scene.ask().isAnswer)
    #expect(scene.notes.all.last?.contains("pausing for 60 s") == true)
    // One question in 30 s is a trial, and its verdict ends the pause.
    scene.loop.advance(by: .milliseconds(29_900))
    #expect(!scene.ask().isAnswer)
    #expect(scene.servers[0].sent.count == 2)
    scene.loop.advance(by: .milliseconds(100))
    #expect(scene.ask().isAnswer)
    #expect(scene.ask().isAnswer)
    #expect(scene.recoveries == 1)
  }

  @Test(arguments: [400, 401, 403, 404, 429])
  func `a bare status is a matter of the name`(status: Int) {
    let scene = ProviderScene([{ (($0 < 50 ? .status(status) : ProviderStateTests.good), .milliseconds(10)) }])
    for number in 0..<50 { #expect(scene.ask("n\(number).example").failure?.consequence == .nextUpstream) }
    #expect(scene.servers[0].sent.count == 50)
    #expect(scene.ask().isAnswer)
    #expect(scene.notes.all.isEmpty)
  }

  @Test func `simultaneous refusals count once`() {
    let scene = emas { _ in (ProviderStateTests.code("InvalidSignature"), .milliseconds(10)) }
    _ = scene.askAtOnce((0..<20).map { "n\($0).example" })
    #expect(scene.provider.counters.values.transfers == 20)
    #expect(scene.notes.all.count == 1 && scene.notes.all[0].contains("pausing for 30 s"))
  }

  @Test func `Retry-After is kept once names of three domains got it`() {
    let busy = HTTPResult.response(HTTPResponse(status: 429, retryAfter: .seconds(17)))
    let scene = ProviderScene([{ ($0 < 3 ? busy : ProviderStateTests.good, .milliseconds(10)) }])
    for number in 0..<3 { scene.ask("www.n\(number).example") }
    scene.loop.advance(by: .seconds(16))
    #expect(!scene.ask().isAnswer)
    scene.loop.advance(by: .seconds(1))
    #expect(scene.ask().isAnswer)
    #expect(scene.servers[0].sent.count == 4)
  }

  @Test func `a server that asks for calm is not asked for a second`() {
    let scene = ProviderScene([
      { ($0 == 0 ? .failure(HTTPFailure(.calm, "calm", wasSent: true)) : ProviderStateTests.good, .milliseconds(10)) }
    ])
    #expect(scene.ask().failure?.consequence == .nextUpstream)
    #expect(scene.ask().failure?.consequence == .notAsked)
    scene.loop.advance(by: .seconds(1))
    #expect(scene.ask().isAnswer)
  }

  @Test func `another network does not end a pause`() {
    let scene = emas { _ in (ProviderStateTests.code("InvalidSignature"), .milliseconds(10)) }
    scene.ask()
    scene.provider.networkHasChanged()
    #expect(scene.provider.report.state.word == "aside")
  }

  // MARK: Clocks

  @Test func `a wrong clock that looks like a wrong signature is corrected or named`() {
    func ask(isVerified: Bool) -> (isSuccess: Bool, transfers: Int, notes: [String]) {
      let scene = ProviderScene(
        [
          { number in
            let body =
              number > 0
              ? #"{"host":"www.example.com","ips":["192.0.2.7"],"ttl":300}"# : #"{"code":"InvalidSignature"}"#
            let response = HTTPResponse(
              status: number > 0 ? 200 : 403, contentType: "application/json", date: 1_000_005_000,
              body: Array(body.utf8))
            return (.response(response), .milliseconds(10))
          }
        ], dialect: EMASDialect(accountID: "100000", secretKey: Secret("key"), isEncrypted: true),
        isVerified: isVerified)
      return (scene.ask().isAnswer, scene.servers[0].sent.count, scene.notes.all)
    }
    let corrected = ask(isVerified: true)
    #expect(corrected.isSuccess && corrected.transfers == 2 && corrected.notes.isEmpty)
    let named = ask(isVerified: false)
    #expect(!named.isSuccess && named.transfers == 1)
    #expect(named.notes.first?.contains("set the machine's clock, which differs from the provider's by") == true)
  }

  @Test func `the clock is learned from authenticated responses only`() {
    func times(isVerified: Bool) -> [Int64] {
      let signing = AliDNSDialect(
        account: .init(accountID: "1", accessKeyID: "2", accessKeySecret: Secret("3")), isEncrypted: isVerified)
      let loop = SimulatedLoop()
      let scene = ProviderScene(
        on: loop,
        [
          { _ in
            (
              .response(HTTPResponse(status: 200, contentType: "text/html", date: loop.wallTime + 5_000)),
              .milliseconds(10)
            )
          }
        ], dialect: signing, isVerified: isVerified)
      for _ in 0..<2 { scene.ask() }
      return scene.servers[0].sent.map { sent in
        Int64(sent.request.target.split(separator: "ts=")[1].prefix { $0 != "&" })!
      }
    }
    let learned = times(isVerified: true)
    #expect(learned[1] - learned[0] >= 4_990)
    let unlearned = times(isVerified: false)
    #expect(unlearned[1] - unlearned[0] < 10)
  }

  // MARK: Names without answers

  @Test func `an empty answer that may mean "not in the list" is not paid for again, until it is forgotten`() throws {
    let dialect = AliDNSDialect(account: nil, form: .short, isEncrypted: true)
    let remembering = ProviderScene([Scene.always(.json("[]"))], dialect: dialect)
    for _ in 0..<10 { #expect(try remembering.ask().get().answer.isEmptyAmbiguous) }
    #expect(remembering.servers[0].sent.count == 1)
    #expect(remembering.provider.counters.values.notListed == 9)
    // Background work goes to the next upstream at once.
    let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
    #expect(!remembering.provider.isFit(for: question))
    #expect(remembering.provider.isFit(for: HTTPDNSQuestion(name: name("other.example.com"), type: .a)))
    remembering.loop.advance(by: .seconds(600))
    #expect(remembering.provider.isFit(for: question))
    remembering.ask()
    #expect(remembering.servers[0].sent.count == 2)
    _ = remembering.provider.forgetNotListed(.everything)
    remembering.ask()
    #expect(remembering.servers[0].sent.count == 3)
    // Where empty answers are taken at their word there is nothing to remember.
    let believing = ProviderScene(
      [Scene.always(.json("[]"))], .tested(name: "first", fallsBackOnEmpty: false), dialect: dialect)
    for _ in 0..<2 { #expect(try !believing.ask().get().answer.isEmptyAmbiguous) }
    #expect(believing.provider.counters.values.transfers == 2)
  }
}
