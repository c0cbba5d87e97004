// ResolverCoalescingTests.swift -- one request for any number of equal questions, and when a retry is another one.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverCoalescingTests {
  let loop = SimulatedLoop()

  private func provider(after latency: Duration = .milliseconds(50), ttl: UInt32 = 300) -> ScriptedUpstream {
    ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: ttl), after: latency)
    }
  }

  /// Answers A after `a`, and AAAA after `aaaa` together with another answer to A.
  private func providerOfBoth(a: Duration, aaaa: Duration) -> ScriptedUpstream {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      question.type == .a
        ? .answer(.addresses(question.name, "192.0.2.1"), after: a)
        : .answer(.addresses(question.name, "2001:db8::1"), after: aaaa)
    }
    provider.along = { question in
      guard question.type == .aaaa else { return [] }
      return [(HTTPDNSQuestion(name: question.name, type: .a), .addresses(question.name, "192.0.2.2"))]
    }
    return provider
  }

  @Test func `a thousand equal questions are one request`() {
    let provider = provider()
    let scene = ResolverScene(on: loop, [provider])
    for client in 1...1000 { scene.ask("www.example.com", client: UInt16(client)) }
    loop.advance(by: .seconds(5))
    #expect(provider.asked.count == 1)
    #expect(scene.counters.joined == 999)
    #expect(scene.transactions.allSatisfy { $0.replies.count == 1 })
    #expect(scene.transactions.allSatisfy { $0.replies.first?.message.addresses == ["192.0.2.1"] })
    #expect(scene.queries.inUse == 0)
    #expect(scene.inFlight == 0)
  }

  @Test func `an answer that comes along with another question's is given to those who wait`() throws {
    let provider = providerOfBoth(a: .milliseconds(1900), aaaa: .milliseconds(1400))
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(.addresses(question.name, "10.0.0.1"), after: .milliseconds(1))
    }
    let scene = ResolverScene(on: loop, [provider], local: local)
    let numbers = [scene.ask("www.example.com", .a), scene.ask("www.example.com", .aaaa)]
    loop.advance(by: .seconds(5))
    #expect(local.asked.count == 2)
    let replies = try numbers.map { try scene.reply($0) }
    #expect(replies.map(\.message.addresses) == [["192.0.2.2"], ["2001:db8::1"]])
    #expect(replies.map(\.after) == [.milliseconds(1400), .milliseconds(1400)])
    #expect(scene.inFlight == 0)
  }

  @Test func `what comes along from another network is not given to those who ask on this one`() throws {
    let provider = providerOfBoth(a: .milliseconds(200), aaaa: .milliseconds(100))
    let scene = ResolverScene(on: loop, [provider])
    scene.ask("www.example.com", .aaaa)
    loop.advance(by: .milliseconds(50))
    scene.cache.beginEpoch()
    let number = scene.ask("www.example.com", .a)
    loop.advance(by: .seconds(5))
    #expect(try scene.reply(number).message.addresses == ["192.0.2.1"])
    #expect(try scene.reply(number).after == .milliseconds(200))
  }

  @Test func `what comes along from an earlier configuration is not given to those who ask by this one`() throws {
    let earlier = providerOfBoth(a: .milliseconds(200), aaaa: .milliseconds(100))
    let scene = ResolverScene(on: loop, [earlier])
    scene.ask("www.example.com", .aaaa)
    loop.advance(by: .milliseconds(50))
    scene.change(to: [provider(after: .milliseconds(200))])()
    let number = scene.ask("www.example.com", .a)
    loop.advance(by: .seconds(5))
    #expect(try scene.reply(number).message.addresses == ["192.0.2.1"])
    #expect(try scene.reply(number).after == .milliseconds(200))
  }

  @Test func `spelling does not make questions different, and each client gets its own spelling back`() throws {
    let provider = provider()
    let scene = ResolverScene(on: loop, [provider])
    let spellings = ["www.example.com", "WWW.EXAMPLE.COM", "wWw.eXaMpLe.cOm"]
    let numbers = spellings.map { scene.ask($0) }
    loop.advance(by: .seconds(1))
    #expect(provider.asked.map(\.question.name.octets) == [name("www.example.com").octets])
    for (number, spelling) in zip(numbers, spellings) {
      let message = try scene.reply(number).message
      #expect(message.questions[0].question.name.octets == name(spelling).octets)
      #expect(message.answers[0].owner.octets == name(spelling).octets)
    }
  }

  @Test func `questions that may have different answers are different requests`() {
    let provider = provider()
    let scene = ResolverScene(on: loop, [provider])
    let plain = ClientQuestion(name: "www.example.com")
    var others = [plain, plain, plain, plain]
    others[0].dnssecOK = true
    others[1].checkingDisabled = true
    others[2].type = .aaaa
    others[3].name = "example.com"
    for question in [plain] + others + [plain] + others { scene.ask(question) }
    loop.advance(by: .seconds(1))
    #expect(provider.asked.count == 5)
    #expect(Set(provider.asked.map(\.question)).count == 5)
    #expect(scene.counters.joined == 5)
  }

  /// The four forms of one question: with and without DO and CD.
  private let forms = [false, true].flatMap { dnssecOK in
    [false, true].map { ClientQuestion(name: "www.example.com", dnssecOK: dnssecOK, checkingDisabled: $0) }
  }

  @Test func `questions that differ only in DO and CD are one for a provider without them`() throws {
    let provider = provider()
    provider.traits.knowsDNSSECFlags = false
    let scene = ResolverScene(on: loop, [provider])
    let numbers = forms.map { scene.ask($0) }
    loop.advance(by: .seconds(1))
    for (number, form) in zip(numbers, forms) {
      let message = try scene.reply(number).message
      #expect(message.addresses == ["192.0.2.1"])
      // The response has the client's own flags.
      #expect(message.edns?.dnssecOK == form.dnssecOK)
      #expect(message.header.cd == form.checkingDisabled)
    }
    #expect(provider.asked.map(\.question) == [HTTPDNSQuestion(name: name("www.example.com"), type: .a)])
    // The cache has one entry for all of them, which the hot path finds.
    #expect(scene.cache.usage.entries == 1)
    for form in forms {
      let number = scene.ask(form)
      #expect(try scene.reply(number).message.addresses == ["192.0.2.1"])
      #expect(try scene.reply(number).after == .zero)
    }
    #expect(provider.asked.count == 1)
  }

  @Test func `DO and CD matter if any provider of the route supports them, LocalDNS aside`() {
    let local = ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "10.0.0.1")) }
    let plain = provider()
    plain.traits.knowsDNSSECFlags = false
    let one = ResolverScene(on: loop, [plain], local: local)
    plain.script = { _, _ in .failure() }
    for form in forms { one.ask(form) }
    loop.advance(by: .seconds(1))
    #expect(plain.asked.count == 1)
    #expect(local.asked.count == 1)
    let other = provider()
    let two = ResolverScene(on: loop, [plain, other])
    for form in forms { two.ask(form) }
    loop.advance(by: .seconds(1))
    #expect(other.asked.count == 4)
    // A route that leads to LocalDNS alone distinguishes them, too.
    for form in forms { one.ask(ClientQuestion(name: "host.home.arpa", dnssecOK: form.dnssecOK)) }
    loop.advance(by: .seconds(1))
    #expect(local.asked.count == 3)
  }

  @Test func `the same question by another route is another request`() {
    let provider = provider()
    let scene = ResolverScene(on: loop, [provider]) { $0.routes.append($0.routes[0]) }
    let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
    let sources = loop.run { [resolver = scene.resolver, loop] in
      let tasks = [0, Route.Number.firstRule, 0].map { route in
        loop.startTask { await resolver.resolve(question, route: route, fresh: true).source }
      }
      var sources: [AnswerSource] = []
      for task in tasks { sources.append(await task.value) }
      return sources
    }
    #expect(sources == Array(repeating: .provider("first", server: "192.0.2.1"), count: 3))
    #expect(provider.asked.count == 2)
  }

  @Test func `an answer with TTL 0 is shared by the waiting clients only`() throws {
    let provider = provider(ttl: 0)
    let scene = ResolverScene(on: loop, [provider])
    let numbers = (1...3).map { scene.ask("www.example.com", client: $0) }
    loop.advance(by: .seconds(1))
    for number in numbers { #expect(try scene.reply(number).message.answers.map(\.ttl) == [0]) }
    #expect(provider.asked.count == 1)
    #expect(scene.cache.usage.entries == 0)
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    #expect(provider.asked.count == 2)
  }
}

@Suite struct ResolverRetryTests {
  let loop = SimulatedLoop()
  let provider: ScriptedUpstream
  let scene: ResolverScene

  init() {
    provider = ScriptedUpstream(on: loop) { question, index in
      index == 0 ? .silence : .answer(.addresses(question.name, "192.0.2.1"))
    }
    provider.traits.timeout = .seconds(10)
    scene = ResolverScene(on: loop, [provider])
  }

  @Test func `a client's retry after a second starts another request for all waiting clients`() throws {
    let question = ClientQuestion(name: "www.example.com", id: 7)
    let first = scene.ask(ClientQuestion(name: "www.example.com", client: 2))
    scene.ask(question)
    loop.advance(by: .milliseconds(1000))
    scene.ask(question)
    loop.advance(by: .milliseconds(20))
    #expect(provider.asked.count == 2)
    #expect(provider.asked[1].at - provider.asked[0].at == .seconds(1))
    #expect(try scene.reply(first).message.addresses == ["192.0.2.1"])
    // The two queries are one, octet by octet: it has one answer.
    #expect(scene.transactions[1].replies.count + scene.transactions[2].replies.count == 1)
    #expect(scene.counters.duplicates == 1)
    #expect(scene.queries.inUse == 0)
  }

  @Test func `a client that asks again with a new ID from its old port is known, and so is one with a new port`() {
    scene.ask(ClientQuestion(name: "www.example.com", port: 4000, id: 1))
    scene.ask(ClientQuestion(name: "www.example.org", port: 4000, id: 2))
    loop.advance(by: .milliseconds(1100))
    scene.ask(ClientQuestion(name: "www.example.com", port: 4000, id: 3))
    #expect(provider.asked.filter { $0.question.name == name("www.example.com") }.count == 1)
    loop.settle()
    #expect(provider.asked.filter { $0.question.name == name("www.example.com") }.count == 2)
    scene.ask(ClientQuestion(name: "www.example.org", port: 4001, id: 2))
    loop.settle()
    #expect(scene.counters.fetches == 2)
  }

  @Test func `a retry within a second, and another client at any time, only join`() {
    scene.ask(ClientQuestion(name: "www.example.com", client: 1, id: 1))
    loop.advance(by: .milliseconds(999))
    scene.ask(ClientQuestion(name: "www.example.com", client: 1, id: 1))
    loop.advance(by: .seconds(1))
    scene.ask(ClientQuestion(name: "www.example.com", client: 2, id: 1))
    scene.ask(ClientQuestion(name: "www.example.com", client: 1, port: 6000, id: 2))
    loop.settle()
    #expect(provider.asked.count == 1)
  }

  @Test func `at most three requests of one question are in flight for any number of retries`() throws {
    provider.script = { _, _ in .silence }
    for _ in 0..<40 {
      scene.ask("www.example.com")
      loop.advance(by: .milliseconds(100))
    }
    #expect(provider.asked.count == 3)
    loop.advance(by: .seconds(1))
    #expect(scene.transactions.allSatisfy { $0.replies.count == 1 })
    loop.advance(by: .seconds(10))
    #expect(scene.inFlight == 0)
  }
}
