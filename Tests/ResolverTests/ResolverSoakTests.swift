// ResolverSoakTests.swift -- random clients against random weather upstream: exactly one reply for each query, in time.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// Random latencies, failures, silences and outages of one upstream, from one seed.
private final class Weather: @unchecked Sendable {
  private var random: SeededGenerator
  private let loop: SimulatedLoop
  private var outageUntil: BootInstant
  private let failing: Int
  private let slow: Int

  init(seed: UInt64, _ loop: SimulatedLoop) {
    random = SeededGenerator(seed: seed)
    self.loop = loop
    outageUntil = loop.now
    failing = Int.random(in: 1...8, using: &random)
    slow = Int.random(in: 1...6, using: &random)
  }

  func step(_ question: HTTPDNSQuestion) -> ScriptedStep {
    if random.oneIn(60) { outageUntil = loop.now + .seconds(Int.random(in: 1...20, using: &random)) }
    let latency = Duration.milliseconds(
      random.oneIn(slow) ? Int.random(in: 0...6000, using: &random) : Int.random(in: 0...120, using: &random))
    guard loop.now >= outageUntil, !random.oneIn(12) else { return .silence }
    if random.oneIn(failing) {
      return .failure(
        [.networkError, .invalidData, .notSupported, .other].randomElement(using: &random)!, after: latency)
    }
    return .answer(answer(question), after: latency)
  }

  private func answer(_ question: HTTPDNSQuestion) -> HTTPDNSAnswer {
    let ttl: UInt32 = [0, 1, 5, 60, 3600].randomElement(using: &random)!
    switch Int.random(in: 0..<8, using: &random) {
    case 0: return .negative(.nxDomain, zone: name("example"))
    case 1: return .negative(.noError)
    case 2:
      var empty = HTTPDNSAnswer.negative(.noError)
      empty.isEmptyAmbiguous = true
      return empty
    case 3: return HTTPDNSAnswer(responseCode: .refused)
    default:
      let address = question.type == .aaaa ? "2001:db8::1" : "192.0.2.1"
      var answer = HTTPDNSAnswer.addresses(question.name, address, ttl: ttl)
      if question.type != .a, question.type != .aaaa {
        let rdata: [UInt8] = question.type == .https ? [0, 1, 0] : [3, 97, 98, 99]
        answer.answers = [ResourceRecord(owner: question.name, type: question.type, ttl: ttl, rdata: rdata)]
      }
      if question.clientSubnet != nil { answer.scopePrefixLength = [0, 16, 24].randomElement(using: &random)! }
      return answer
    }
  }
}

@Suite struct ResolverSoakTests {
  private struct Trouble: CustomStringConvertible {
    var description: String
  }

  private static let types: [RecordType] = [.a, .a, .a, .aaaa, .https, .txt]

  @Test func `two hundred random lives: every query has one reply, within 4.5 s, with its ID and question`() {
    for number in 0..<200 {
      let seed = testSeed &+ UInt64(number)
      let troubles = live(seed)
      #expect(troubles.isEmpty, "life \(number) of HTTPDNSD_TEST_SEED")
      guard troubles.isEmpty else { break }
    }
  }

  @Test func `the same seed is the same life`() {
    var lives: [[String]] = [[], []]
    for turn in 0...1 { _ = live(testSeed) { lives[turn].append($0) } }
    #expect(lives[0] == lives[1])
    #expect(lives[0].count > 30)
  }

  /// Runs half a virtual minute and waits until all is over; returns what was wrong.
  private func live(_ seed: UInt64, log: (String) -> Void = { _ in }) -> [Trouble] {
    var random = SeededGenerator(seed: seed)
    let loop = SimulatedLoop()
    let upstreams = (0..<Int.random(in: 0...3, using: &random)).map { number in
      let weather = Weather(seed: random.next(), loop)
      let upstream = ScriptedUpstream("provider\(number)", on: loop) { question, _ in weather.step(question) }
      upstream.servers = Int.random(in: 1...3, using: &random)
      upstream.traits.timeout = .milliseconds([500, 2000, 3000].randomElement(using: &random)!)
      if random.oneIn(3) { upstream.unserved = [.https] }
      if random.oneIn(3) { upstream.traits.clientSubnet = .fromClient }
      upstream.ignoresDeadline = random.oneIn(10)
      return upstream
    }
    let weather = Weather(seed: random.next(), loop)
    let local = ScriptedLocalDNS(on: loop) { question, _ in weather.step(question) }
    local.isThere = !random.oneIn(3)
    let most = [3, 10, 1024].randomElement(using: &random)!
    let scene = ResolverScene(on: loop, upstreams, local: local, slots: most * 4) {
      $0.listen.maxInFlight = most
      $0.cache.isEnabled = !random.oneIn(4)
      $0.cache.nxdomainCut = !random.oneIn(2)
    }
    for _ in 0..<Int.random(in: 40...120, using: &random) {
      scene.ask(question(&random))
      if !random.oneIn(3) { loop.advance(by: .milliseconds(Int.random(in: 0...600, using: &random))) }
    }
    // Some upstreams keep to no deadline.
    loop.advance(by: .seconds(4 * 3600))
    for transaction in scene.transactions {
      for reply in transaction.replies { log("\(transaction.id) \(reply.at) \(reply.message.responseCode)") }
    }
    return scene.transactions.flatMap { check($0) } + check(scene)
  }

  private func question(_ random: inout SeededGenerator) -> ClientQuestion {
    let text = ["www.example", "WWW.Example", "a.example", "b.a.example", "printer", "x.example", "db.internal"]
    var question = ClientQuestion(
      name: text.randomElement(using: &random)!, type: ResolverSoakTests.types.randomElement(using: &random)!,
      client: UInt16.random(in: 1...4, using: &random))
    if random.oneIn(3) { question.name = "host\(Int.random(in: 0...30, using: &random)).example" }
    question.dnssecOK = random.oneIn(6)
    question.checkingDisabled = random.oneIn(6)
    if random.oneIn(5) { question.subnet = IPPrefix(text: random.oneIn(2) ? "203.0.113.0/24" : "198.51.100.0/24") }
    return question
  }

  private func check(_ transaction: ClientTransaction) -> [Trouble] {
    guard transaction.replies.count == 1, let reply = transaction.replies.first else {
      return [Trouble(description: "\(transaction.question): \(transaction.replies.count) replies")]
    }
    let asked = transaction.question
    var troubles: [String] = []
    if reply.at - transaction.askedAt > .milliseconds(4500) { troubles.append("late") }
    if reply.message.id != transaction.id { troubles.append("ID") }
    let question = reply.message.questions.first?.question
    if question?.name.octets != name(asked.name).octets || question?.type != asked.type { troubles.append("question") }
    if reply.message.header.cd != asked.checkingDisabled || reply.message.edns?.dnssecOK != asked.dnssecOK {
      troubles.append("flags")
    }
    if reply.message.responseCode == .servFail, reply.message.extendedError == nil { troubles.append("no reason") }
    if reply.message.header.tc { troubles.append("truncated") }
    let isNegative = reply.message.responseCode != .servFail && reply.message.answers.isEmpty
    if isNegative, !reply.message.authorities.contains(where: { $0.type == .soa }) { troubles.append("no SOA") }
    return troubles.map { Trouble(description: "\(asked): \($0)") }
  }

  /// In the end nothing is in flight and nothing is left behind.
  private func check(_ scene: ResolverScene) -> [Trouble] {
    let left = [
      ("slots", scene.queries.inUse), ("in flight", scene.inFlight), ("timers", scene.loop.timers.count),
      ("in flight", scene.resolver.assumeIsolated { $0.inFlight.count }), ("strays", scene.strays),
    ]
    return left.filter { $0.1 != 0 }.map { Trouble(description: "\($0.1) \($0.0) left") }
  }
}
