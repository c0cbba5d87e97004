// UndecidedRefusalTests.swift -- refusals that may concern the name, the account or the clock, and the clock over http.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPMessage
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import HTTPDNS
@testable import Upstreams

/// A service in which 403 may mean anything, 400 something that it does not explain, and a body may have its time.
private struct VagueDialect: BatchDialect {
  var learnsTimeInTheClear = false
  var families = TransferFamilies.wanted
  let mostNames = 10
  let billing = Billing(unitsPerTransfer: 0, unitsPerName: 2, source: "a test")

  func request(for batch: QuestionBatch, unixTime: Int64) -> HTTPRequest {
    let families = batch.types.map(\.description).joined(separator: ",")
    return HTTPRequest(
      target: "/d?t=\(unixTime)&f=\(families)&n=\(batch.names.map(\.text).joined(separator: ","))")
  }

  func answers(
    to batch: QuestionBatch, from response: HTTPResponse
  ) throws(HTTPDNSFailure) -> [Result<HTTPDNSAnswer, HTTPDNSFailure>] {
    switch response.status {
    case 200: break
    case 403: throw .notListed
    case 400: throw .unexplained
    default: throw .status(response.status)
    }
    return batch.questions.map { question in
      let address = ResourceRecord(
        owner: question.name, type: question.type, ttl: 60,
        rdata: [UInt8](repeating: 1, count: question.type == .a ? 4 : 16))
      return .success(HTTPDNSAnswer(responseCode: .noError, answers: [address]))
    }
  }

  func errorCode(in response: HTTPResponse) -> String? { response.status == 400 ? "Odd" : nil }

  func unixTime(in response: HTTPResponse) -> Int64? { Int64(String(decoding: response.body, as: UTF8.self)) }
}

@Suite struct UndecidedRefusalTests {
  private let loop = SimulatedLoop()

  private func scene(
    learnsTimeInTheClear: Bool = false, isVerified: Bool = true, _ script: @escaping ProviderScene.Script
  ) -> ProviderScene {
    ProviderScene(
      on: loop, [script], dialect: VagueDialect(learnsTimeInTheClear: learnsTimeInTheClear), isVerified: isVerified)
  }

  private func reply(_ status: Int, date: Int64? = nil, _ body: String = "") -> (HTTPResult, Duration) {
    (.response(HTTPResponse(status: status, date: date, body: Array(body.utf8))), .milliseconds(10))
  }

  private func isAmbiguous(_ result: Result<UpstreamAnswer, UpstreamFailure>) -> Bool {
    (try? result.get().answer.isEmptyAmbiguous) == true
  }

  /// The times that requests were signed by, relative to the machine's clock at the start.
  private func times(_ scene: ProviderScene, from start: Int64) -> [Int64] {
    scene.servers[0].sent.compactMap { sent in
      sent.request.target.firstMatch(of: /t=(\d+)/).flatMap { Int64($0.1) }.map { $0 - start }
    }
  }

  @Test func `a refusal that may mean an unlisted name is an empty answer, remembered, and no failure`() {
    let scene = scene { self.reply($0 < 3 ? 403 : 200) }
    for number in 0..<3 { #expect(isAmbiguous(scene.ask("n\(number).example"))) }
    #expect(isAmbiguous(scene.ask("n0.example")))
    #expect(scene.servers[0].sent.count == 3)
    #expect(scene.provider.report.state == .up && scene.provider.counters.values.failures.total == 0)
    #expect(scene.provider.counters.values.units == 6)
    #expect(scene.ask("n3.example").isAnswer && scene.notes.all.isEmpty)
  }

  @Test func `where empty answers are taken at their word, a refusal that may mean the account is no answer`() {
    let scene = ProviderScene(
      on: loop, [{ self.reply($0 == 0 ? 200 : 403) }],
      .tested(name: "first", hasAccount: true, fallsBackOnEmpty: false), dialect: VagueDialect())
    #expect(scene.ask("a.example").isAnswer)
    let refusal = scene.ask("b.example").failure
    #expect(refusal?.report == .notListed && refusal?.consequence == .nextUpstream)
    #expect(scene.provider.report.state == .up)
  }

  @Test func `one repeat follows if the refusal moves the clock, and never more`() {
    let start = loop.wallTime
    let ahead = scene { self.reply($0 == 1 ? 200 : 403, date: start + 7200) }
    #expect(!isAmbiguous(ahead.ask()) && ahead.servers[0].sent.count == 2)
    #expect(times(ahead, from: start) == [0, 7200])
    let always = scene { self.reply(403, date: start + 3600 * Int64($0 + 1)) }
    #expect(isAmbiguous(always.ask()))
    #expect(times(always, from: start) == [0, 3600])
  }

  @Test(arguments: [(403, 1, Duration.seconds(4)), (401, 1, .seconds(4)), (403, 0, .milliseconds(105))])
  func `without a repeat a refusal that moves the clock says nothing about name and account`(
    status: Int, perSecond: Int, time: Duration
  ) {
    let start = loop.wallTime
    var settings = Configuration.Provider.tested(name: "first", hasAccount: true)
    settings.requestsPerSecond = perSecond
    let scene = ProviderScene(
      on: loop, [{ self.reply($0 == 0 ? status : 200, date: start + 7200) }], settings, dialect: VagueDialect())
    let first = scene.ask(within: time)
    #expect(first.failure?.consequence == .nextUpstream && first.failure?.reason.contains("a wrong clock") == true)
    #expect(scene.servers[0].sent.count == 1 && scene.provider.report.state == .up && scene.notes.all.isEmpty)
    loop.advance(by: .seconds(2))
    #expect(scene.ask().isAnswer)
    #expect(times(scene, from: start) == [0, 7202])
  }

  @Test func `what is not explained is a failure of the name alone, repeated if the clock was wrong`() {
    let start = loop.wallTime
    let scene = scene { self.reply($0 < 4 ? 400 : 200, date: start + 7200) }
    for number in 0..<3 {
      let failure = scene.ask("n\(number).example").failure
      #expect(failure?.consequence == .nextUpstream)
      #expect(number == 0 || failure?.advice == "check that the provider's console lists the name, and token")
    }
    #expect(times(scene, from: start) == [0, 7200, 7200, 7200])
    #expect(scene.ask("n3.example").isAnswer && scene.provider.report.state == .up)
  }

  @Test(arguments: [403, 400])
  func `if nothing is ever answered the eighth refusal is one warning`(status: Int) {
    let scene = scene { self.reply($0 < 30 ? status : 200) }
    #expect(scene.provider.report.remark == nil)
    scene.ask("n0.example")
    #expect(scene.provider.report.remark?.hasPrefix("1 request refused and none answered yet: ") == true)
    for number in 1..<7 { scene.ask("n\(number).example") }
    #expect(scene.notes.all.isEmpty)
    for number in 7..<20 { scene.ask("n\(number).example") }
    #expect(
      scene.notes.all == [
        "provider first: 8 requests refused and none answered yet: \(status == 400 ? "\"Odd\"" : "HTTP status 403"); check "
          + "that the provider's console lists these names, and token"
      ])
  }

  @Test func `after an answer refusals are no reason to warn`() {
    let scene = scene { self.reply($0 == 3 ? 200 : 403) }
    for number in 0..<40 { scene.ask("n\(number).example") }
    #expect(scene.notes.all.isEmpty && scene.provider.report.remark == nil)
  }

  @Test(arguments: [true, false]) func `what is refused alone is not refreshed for a while, unless it is answered`(
    fallsBackOnEmpty: Bool
  ) {
    let scene = ProviderScene(
      on: loop, [{ self.reply($0 < 2 ? (fallsBackOnEmpty ? 400 : 403) : 200) }],
      .tested(name: "first", hasAccount: true, fallsBackOnEmpty: fallsBackOnEmpty), dialect: VagueDialect())
    for step in 0..<3 {
      let isAnswered = scene.ask("www.example.com").isAnswer
      #expect(isAnswered == (step == 2) && scene.isFit == isAnswered)
      if step == 0 {
        loop.advance(by: .seconds(600))
        #expect(scene.isFit)
      }
    }
  }

  @Test(arguments: [403, 400]) func `a refused transfer of several names may concern one, and hinders nothing`(
    status: Int
  ) {
    let scene = scene { number in self.reply(number < 3 ? status : 200) }
    let questions = ["a.example", "b.example"].map { HTTPDNSQuestion(name: DomainName(text: $0)!, type: .a) }
    nonisolated(unsafe) let provider = scene.provider
    for _ in 0..<3 {
      let result = loop.run { [loop] in await provider.refresh(questions, deadline: loop.now + .seconds(4)) }
      guard case .failure(let failure) = result else { return #expect(Bool(false)) }
      #expect(failure.report?.mayConcernOneName == true && failure.consequence == .nextUpstream)
      #expect(questions.allSatisfy { provider.isFit(for: $0) })
    }
    #expect(provider.counters.values.units == 12 && scene.notes.all.isEmpty)
  }

  @Test func `a service that always has both families is asked once for both, and each is used`() throws {
    let scene = ProviderScene(
      on: loop, [{ _ in self.reply(200) }], dialect: VagueDialect(families: .both))
    let answer = try scene.ask("a.example").get()
    #expect(answer.answer.answers.map(\.type) == [.a] && answer.others.map(\.question.type) == [.aaaa])
    nonisolated(unsafe) let provider = scene.provider
    let question = HTTPDNSQuestion(name: DomainName(text: "b.example")!, type: .aaaa)
    let refreshed = try loop.run { [loop] in
      await provider.refresh([question], deadline: loop.now + .seconds(4))
    }.get()
    #expect(try refreshed[question]?.get().answer.answers.map(\.type) == [.aaaa])
    #expect(try refreshed[question]?.get().others.map(\.question.type) == [.a])
    #expect(scene.servers[0].sent.map { $0.request.target.contains("f=A,AAAA") } == [true, true])
    #expect(provider.counters.values.units == 4)
  }

  @Test func `a service with one family in a transfer gets a transfer for each, and its price`() throws {
    let scene = ProviderScene(
      on: loop, [{ number in self.reply(number == 3 ? 500 : 200) }], dialect: VagueDialect(families: .one))
    nonisolated(unsafe) let provider = scene.provider
    let questions = [("a", RecordType.a), ("a", .aaaa), ("b", .a), ("b", .aaaa)].map {
      HTTPDNSQuestion(name: DomainName(text: "\($0.0).example")!, type: $0.1)
    }
    func refresh() throws -> [Bool] {
      let answers = try loop.run { [loop] in
        await provider.refresh(questions, deadline: loop.now + .seconds(4))
      }.get()
      return questions.map { (try? answers[$0]?.get().answer.answers.isEmpty) == false }
    }
    #expect(try refresh() == [true, true, true, true])
    // A failure of one family leaves the other one alone.
    #expect(try refresh() == [true, false, true, false])
    let targets = scene.servers[0].sent.map { String($0.request.target.drop { $0 != "f" }) }
    let both = ["f=A&n=a.example.,b.example.", "f=AAAA&n=a.example.,b.example."]
    #expect(targets == both + both)
    #expect(provider.counters.values.units == 16)
    #expect(provider.refreshPrice.perName == 0 && provider.refreshPrice.perAnswer == 2)
    // Clients that ask for both families get two transfers.
    for type in [RecordType.a, .aaaa, .a] {
      let question = HTTPDNSQuestion(name: DomainName(text: "c.example")!, type: type)
      let result = loop.run { [loop] in
        await provider.ask(question, deadline: loop.now + .seconds(4), isLastResort: false)
      }
      #expect(result.isAnswer)
    }
    #expect(scene.servers[0].sent.suffix(3).map { $0.request.target.contains("f=A,") } == [false, false, false])
  }

  @Test func `over http a refusal corrects the clock of a service that allows it, and an answer does not`() {
    let start = loop.wallTime
    for learns in [true, false] {
      let scene = scene(learnsTimeInTheClear: learns, isVerified: false) { number in
        self.reply(number == 1 ? 403 : 200, date: start + 7200)
      }
      #expect(scene.ask("a.example").isAnswer)
      #expect(isAmbiguous(scene.ask("b.example")) == !learns)
      #expect(times(scene, from: start) == (learns ? [0, 0, 7200] : [0, 0]))
    }
  }

  @Test(arguments: [true, false])
  func `a refusal without a time in its body corrects the clock by Date, also after one with it`(isVerified: Bool) {
    let start = loop.wallTime
    let scene = scene(learnsTimeInTheClear: true, isVerified: isVerified) { number in
      self.reply([0, 1].contains(number) ? 403 : 200, date: start + 7200, number == 0 ? "1000" : "")
    }
    scene.ask("a.example")
    #expect(scene.servers[0].sent.count == 2)
    #expect(scene.ask("b.example").isAnswer)
    #expect(times(scene, from: start).last == 7200)
  }

  @Test func `the time in a body goes before Date, which then corrects nothing`() {
    let start = loop.wallTime
    let scene = scene { number in
      number == 0 ? self.reply(403, date: start, "\(start + 600)") : self.reply(200, date: start)
    }
    for name in ["a", "b", "c"] { #expect(scene.ask("\(name).example").isAnswer) }
    #expect(times(scene, from: start) == [0, 600, 600, 600])
  }
}
