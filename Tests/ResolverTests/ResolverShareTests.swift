// ResolverShareTests.swift -- one client, or one domain, that wants everything: others are served all the same.

import Configuration
import DNSWire
import EventLoop
import FairShares
import HTTPDNS
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverShareTests {
  let loop = SimulatedLoop()

  /// Answers at once, but never about `slow.test.`.
  private func provider() -> ScriptedUpstream {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      question.name.text.hasSuffix("slow.example.")
        ? .silence : .answer(.addresses(question.name, "192.0.2.1"), after: .milliseconds(20))
    }
    provider.traits.refreshPrice = .oneUnit
    return provider
  }

  private func scene(_ provider: ScriptedUpstream, slots: Int = 4096, _ local: ScriptedLocalDNS? = nil) -> ResolverScene
  {
    ResolverScene(on: loop, [provider], local: local, slots: slots) {
      $0.listen.missesPerClient = 500
      $0.listen.missesPerDomain = 50
    }
  }

  /// Whether the hostile client and the others have one address.
  static let sameAddress = [false, true]

  @Test(arguments: sameAddress)
  func `10,000 random names of one domain cost 450 questions, and other clients are answered`(
    isOne: Bool
  )
    throws
  {
    let provider = provider()
    provider.remembers = false
    let local = ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "10.0.0.1")) }
    let scene = scene(provider, local)
    var others: [Int] = []
    var hostile: [Int] = []
    for number in 0..<10_000 {
      hostile.append(scene.ask("x\(number).random.example", client: 1))
      if number % 500 == 0 { others.append(scene.ask("www.site\(number).example.com", client: isOne ? 1 : 2)) }
      if number % 500 == 250 { others.append(scene.ask("www.site\(number).test", client: isOne ? 1 : 2)) }
      if number % 500 == 100 { others.append(scene.ask("host\(number).good\(number).example", client: isOne ? 1 : 2)) }
      if number % 20 == 19 { loop.advance(by: .milliseconds(10)) }
    }
    loop.advance(by: .seconds(6))
    let good = others.filter { number in !scene.transactions[number].question.name.hasSuffix("test") }
    for number in good { #expect(try scene.reply(number).message.addresses == ["192.0.2.1"]) }
    #expect(provider.count <= 450 + good.count)
    #expect(provider.count >= 400)
    let refused = try hostile.map { try scene.reply($0).message }.filter { $0.responseCode == .servFail }
    #expect(refused.count == 10_000 - (provider.count - good.count))
    #expect(refused.allSatisfy { $0.extendedError == .other })
    #expect(scene.counters.shares.count(.missesPerDomain, stale: false) == UInt64(refused.count))
    #expect(Set(scene.toldLimits) == [.missesPerDomain])
    // Nothing is remembered of it, and LocalDNS was not asked in the provider's place.
    #expect(scene.resolver.assumeIsolated { $0.memory.count } == 0)
    #expect(local.asked.isEmpty)
    #expect(try scene.answer("x9999.random.example").addresses == ["192.0.2.1"])
  }

  @Test func `an unbilled provider is asked for ten times as many names of one domain`() throws {
    let provider = provider()
    provider.traits.refreshPrice = .free
    let scene = scene(provider)
    for number in 0..<10_000 {
      scene.ask("x\(number).random.example", client: 1)
      if number % 20 == 19 { loop.advance(by: .milliseconds(10)) }
    }
    loop.advance(by: .seconds(1))
    #expect((3900...4500).contains(provider.count))
  }

  @Test func `a name with TTL 0 is answered however often it is asked for`() throws {
    let provider = provider()
    provider.script = { question, index in
      .answer(.addresses(question.name, "192.0.2.\(index % 200)", ttl: 0), after: .milliseconds(5))
    }
    let scene = scene(provider)
    // 460 a second for 20 seconds.
    let numbers = (0..<9200).map { number in
      loop.advance(by: .seconds(1) / 460)
      return scene.ask("www.live.example", client: UInt16(number % 3))
    }
    loop.advance(by: .seconds(1))
    for number in numbers {
      let reply = try scene.reply(number).message
      #expect(reply.responseCode == .noError && reply.answers.map(\.ttl) == [0])
    }
    #expect((900...1200).contains(provider.count))
    // Also while a flood uses up the domain's share, but never an answer that was asked for a second ago or more.
    _ = try scene.answer("www.live.example")
    for number in 0..<400 { scene.ask("x\(number).live.example", client: 9) }
    loop.settle()
    let count = provider.count
    #expect(try scene.answer(ClientQuestion(name: "www.live.example", client: 9)).addresses.count == 1)
    #expect(provider.count == count)
    for number in 400..<2500 {
      if number % 20 == 0 { loop.advance(by: .milliseconds(10)) }
      scene.ask("x\(number).live.example", client: 9)
    }
    #expect(try scene.answer(ClientQuestion(name: "www.live.example", client: 9)).responseCode == .servFail)
  }

  @Test func `beyond its share a client is refused while another one asks, and not before`() throws {
    let provider = provider()
    provider.remembers = false
    let scene = scene(provider)
    func askMany(_ prefix: String, _ count: Int) -> [Int] {
      (0..<count).map { number in
        defer { if number % 100 == 99 { loop.advance(by: .milliseconds(20)) } }
        return scene.ask("www.\(prefix)\(number).example", client: 1)
      }
    }
    // 5,000 names a second, of a domain each: no other client is active.
    let alone = askMany("alone", 5000)
    loop.advance(by: .seconds(1))
    for number in alone { #expect(try scene.reply(number).message.addresses == ["192.0.2.1"]) }
    #expect(try scene.answer(ClientQuestion(name: "www.other.example", client: 2)).addresses == ["192.0.2.1"])
    let together = askMany("together", 5000)
    loop.advance(by: .seconds(1))
    let served = try together.count { try scene.reply($0).message.responseCode == .noError }
    #expect((900...1600).contains(served))
    #expect(scene.counters.shares.count(.missesPerClient) == UInt64(5000 - served))
    for number in 0..<20 {
      #expect(try scene.answer(ClientQuestion(name: "www.o\(number).example", client: 2)).addresses == ["192.0.2.1"])
    }
  }

  @Test func `beyond its share a client gets stale data if there is some`() throws {
    let provider = provider()
    provider.script = { question, _ in .answer(.addresses(question.name, "192.0.2.1", ttl: 5)) }
    let scene = ResolverScene(on: loop, [provider]) {
      $0.listen.missesPerDomain = 1
      $0.routes[0].stale.mode = .onFailure
      $0.routes[0].stale.maxAge = 3600
    }
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    loop.advance(by: .seconds(10))
    for number in 0..<4 { scene.ask("n\(number).example.com") }
    let reply = try scene.answer("www.example.com")
    #expect(reply.addresses == ["192.0.2.1"])
    #expect(reply.extendedError == .staleAnswer)
    #expect(scene.counters.shares.count(.missesPerDomain, stale: true) == 1)
    #expect(provider.asked.count == 5)
  }

  @Test func `questions to LocalDNS are not counted`() throws {
    let local = ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "10.0.0.1"), after: .zero)
    }
    let scene = scene(provider(), local)
    for number in 0..<1000 { #expect(try scene.answer("h\(number).home.arpa").addresses == ["10.0.0.1"]) }
    #expect(scene.toldLimits.isEmpty)
  }

  @Test func `a query that is repeated after a second starts another attempt only where the share allows it`() throws {
    let provider = ScriptedUpstream(on: loop) { _, _ in .silence }
    (provider.traits.timeout, provider.traits.refreshPrice) = (.seconds(10), .oneUnit)
    let scene = ResolverScene(on: loop, [provider]) { $0.listen.missesPerDomain = 1 }
    let question = ClientQuestion(name: "www.example.com", id: 7)
    scene.ask(question)
    for number in 0..<3 { scene.ask("n\(number).example.com") }
    loop.advance(by: .milliseconds(100))
    #expect(provider.count == 4)
    loop.advance(by: .milliseconds(950))
    scene.ask(question)
    loop.settle()
    #expect(provider.count == 5)
    loop.advance(by: .milliseconds(10))
    scene.ask(ClientQuestion(name: "n1.example.com", id: 2))
    loop.settle()
    #expect(provider.count == 5)
  }

  @Test(arguments: sameAddress)
  func `1,100 slow questions of one client leave another one its answers, 20 of 20`(isOne: Bool) throws {
    let provider = provider()
    // Without the shares of a second, which alone would do.
    let scene = ResolverScene(on: loop, [provider])
    var slow = (0..<1100).map { scene.ask("n\($0).slow.example", client: 1) }
    for number in 0..<20 {
      let reply = try scene.answer(
        ClientQuestion(name: "www.site\(number).example", client: isOne ? 1 : 2), within: .milliseconds(30))
      #expect(reply.addresses == ["192.0.2.1"])
      // It goes on all the time.
      slow += (0..<20).map { scene.ask("m\(number)-\($0).slow.example", client: 1) }
      loop.advance(by: .milliseconds(50))
    }
    #expect(scene.counters.shares.displaced >= 20)
    #expect(Set(scene.toldLimits) == [.places])
    loop.advance(by: .seconds(10))
    // Each slow one is answered once, sooner or later.
    for number in slow { #expect(try scene.reply(number).message.responseCode == .servFail) }
    #expect(scene.inFlight == 0)
    #expect(scene.resolver.assumeIsolated { $0.admission.lingering } == 0)
    #expect(scene.queries.inUse == 0)
    #expect(scene.resolver.assumeIsolated { $0.admission.isQuiet })
  }

  @Test func `one client that is alone may have every place`() {
    let scene = ResolverScene(on: loop, [provider()])
    for number in 0..<1024 { scene.ask("n\(number).slow.example", client: 1) }
    #expect(scene.inFlight == 1024)
    #expect(scene.counters.overflows == 0)
  }

  @Test func `one client that floods a domain does not take the domain from the others`() throws {
    let provider = provider()
    provider.remembers = false
    let scene = scene(provider)
    var others: [Int] = []
    for number in 0..<10_000 {
      scene.ask("x\(number).shared.example", client: 1)
      if number % 500 == 250 { others.append(scene.ask("host\(number).shared.example", client: 2)) }
      if number % 20 == 19 { loop.advance(by: .milliseconds(10)) }
    }
    loop.advance(by: .seconds(6))
    for number in others { #expect(try scene.reply(number).message.addresses == ["192.0.2.1"]) }
    #expect(provider.count <= 450)
  }

  @Test func `names in use are fetched while the same client floods their domain`() throws {
    let provider = provider()
    provider.remembers = false
    provider.script = { question, _ in .answer(.addresses(question.name, "192.0.2.1", ttl: 5)) }
    let scene = ResolverScene(on: loop, [provider]) {
      $0.listen.missesPerDomain = 50
      $0.routes[0].stale = .tested(.onFailure)
    }
    for _ in 0..<2 {
      #expect(try scene.answer("www.shared.example").addresses == ["192.0.2.1"])
      loop.advance(by: .seconds(6))
    }
    #expect(try scene.answer("once.shared.example").addresses == ["192.0.2.1"])
    loop.advance(by: .seconds(10))
    for number in 0..<1000 { scene.ask("x\(number).shared.example") }
    // Nothing stale: it was asked for.
    #expect(try scene.answer("www.shared.example").extendedError == nil)
    // A name that was asked for once may be any of a flood's.
    #expect(try scene.answer("once.shared.example").extendedError == .staleAnswer)
  }

  @Test func `a question that finds no place costs neither its client nor its domain anything`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1"), after: .milliseconds(100))
    }
    let scene = ResolverScene(on: loop, [provider]) {
      $0.listen.maxInFlight = 2
      $0.listen.missesPerDomain = 4
    }
    for client in 2...3 { scene.ask("www.d\(client).example", client: UInt16(client)) }
    for number in 0..<50 { scene.ask("n\(number).shared.example", client: 1) }
    #expect(Set(scene.toldLimits) == [.places])
    loop.advance(by: .milliseconds(150))
    #expect(try scene.answer("www.shared.example").addresses == ["192.0.2.1"])
    // And no question was displaced for one that is refused.
    #expect(scene.counters.shares.displaced == 0)
  }

  @Test func `changes among one client's own questions leave others half of the transfers that go on`() {
    let provider = ScriptedUpstream(on: loop) { _, _ in .silence }
    provider.traits.timeout = .seconds(4)
    let scene = ResolverScene(on: loop, [provider]) { $0.listen.maxInFlight = 32 }
    for number in 0..<32 { scene.ask("n\(number).greedy.example", client: 1) }
    for number in 0..<30 { scene.ask("www.other\(number).example", client: 1) }
    #expect(scene.resolver.assumeIsolated { $0.admission.lingering } == 16)
    for number in 0..<12 { scene.ask("www.modest\(number).example", client: 2) }
    #expect(scene.resolver.assumeIsolated { $0.admission.count(of: ClientKey(value: 10 << 32 | 2 << 8 | 4)) } == 12)
  }

  @Test func `a displaced question asks no other upstream, and its late answer is cached`() throws {
    let first = ScriptedUpstream("first", on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1"), after: .milliseconds(500))
    }
    let scene = ResolverScene(on: loop, [first]) { $0.listen.maxInFlight = 2 }
    let slow = (0..<2).map { scene.ask("n\($0).greedy.example", client: 1) }
    loop.advance(by: .milliseconds(10))
    scene.ask("www.example.com", client: 2)
    let displaced = try scene.reply(slow[0])
    #expect(displaced.message.responseCode == .servFail)
    #expect(displaced.message.extendedError == .other)
    loop.advance(by: .seconds(1))
    #expect(try scene.answer("n0.greedy.example").addresses == ["192.0.2.1"])
    #expect(first.count == 3)
  }

  @Test func `a displaced question does not ask its second provider`() throws {
    let first = ScriptedUpstream("first", on: loop) { _, _ in .failure(after: .milliseconds(500)) }
    let second = ScriptedUpstream("second", on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.2")) }
    let local = ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "10.0.0.1")) }
    let scene = ResolverScene(on: loop, [first, second], local: local) { $0.listen.maxInFlight = 2 }
    for number in 0..<2 { scene.ask("n\(number).greedy.example", client: 1) }
    loop.advance(by: .milliseconds(10))
    scene.ask("www.example.com", client: 2)
    loop.advance(by: .seconds(2))
    #expect(first.count == 3)
    #expect(second.asked.map(\.question.name.text).sorted() == ["n1.greedy.example.", "www.example.com."])
    #expect(local.asked.isEmpty)
    #expect(scene.resolver.assumeIsolated { $0.admission.lingering } == 0)
  }

  @Test func `transfers of displaced questions are bounded`() {
    let provider = ScriptedUpstream(on: loop) { _, _ in .silence }
    provider.traits.timeout = .seconds(4)
    provider.remembers = false
    let scene = ResolverScene(on: loop, [provider]) { $0.listen.maxInFlight = 16 }
    // Ever more clients, of which each has less than those before.
    for number in 0..<2000 {
      scene.ask("n\(number).d\(number).example", client: UInt16(number / 2 + 1))
      loop.advance(by: .milliseconds(number % 5))
      #expect(scene.inFlight <= 16)
      #expect(scene.resolver.assumeIsolated { $0.admission.lingering } <= 16)
    }
    loop.advance(by: .seconds(10))
    #expect(scene.inFlight == 0)
    #expect(scene.resolver.assumeIsolated { $0.admission.lingering } == 0)
  }
}

@Suite struct ResolverWaiterTests {
  let loop = SimulatedLoop()

  private func silent() -> ScriptedUpstream {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      question.name.text.hasSuffix("slow.example.") ? .silence : .answer(.addresses(question.name, "192.0.2.1"))
    }
    provider.traits.timeout = .seconds(10)
    return provider
  }

  @Test(arguments: [false, true])
  func `4,000 queries for one name that hangs leave another client, or another domain, its place to wait`(
    isOne: Bool
  ) throws {
    let scene = ResolverScene(on: loop, [silent()])
    for number in 0..<5000 {
      scene.ask(ClientQuestion(name: "www.slow.example", client: 1, port: UInt16(1000 + number), id: UInt16(number)))
    }
    #expect(scene.queries.inUse < 4096)
    for number in 0..<20 {
      let reply = try scene.answer(ClientQuestion(name: "www.s\(number).example", client: isOne ? 1 : 2))
      #expect(reply.addresses == ["192.0.2.1"])
    }
    #expect(scene.toldLimits.contains(.waiting))
    loop.advance(by: .seconds(10))
    #expect(scene.queries.inUse == 0)
    #expect(scene.transactions.allSatisfy { $0.replies.count == 1 })
  }

  @Test func `a client that was refused gets a reply to the same query once more`() throws {
    let scene = ResolverScene(on: loop, [silent()])
    func ask(_ number: Int) -> Int {
      scene.ask(ClientQuestion(name: "www.slow.example", client: 1, port: UInt16(1000 + number), id: UInt16(number)))
    }
    for number in 0..<5000 { _ = ask(number) }
    loop.settle()
    #expect(try scene.reply(4999).message.responseCode == .servFail)
    let again = ask(4999)
    loop.settle()
    #expect(try scene.reply(again).message.responseCode == .servFail)
  }

  @Test func `finding a joining client takes the same steps for any number of waiting clients`() {
    let scene = ResolverScene(on: loop, [silent()], slots: 20_000)
    scene.onlyCount()
    for number in 0..<3900 {
      let client = UInt16(number % 1000 + 1)
      scene.ask(
        ClientQuestion(name: "www.slow.example", client: client, port: UInt16(1000 + number), id: UInt16(number)))
      if number == 100 { loop.advance(by: .milliseconds(1500)) }
    }
    let steps = scene.resolver.assumeIsolated { $0.inFlight.values.map(\.askers.steps).reduce(0, +) }
    #expect(scene.counters.joined == 3899)
    #expect(steps <= 6 * 3900)
  }

  @Test func `a query that comes again octet by octet takes no second slot and gets one answer`() throws {
    let scene = ResolverScene(on: loop, [silent()])
    let question = ClientQuestion(name: "www.slow.example", port: 4000, id: 9)
    for _ in 0..<1000 { scene.ask(question) }
    #expect(scene.queries.inUse == 1)
    #expect(scene.counters.duplicates == 999)
    // The same ID from another port is another query, and so is another ID.
    scene.ask(ClientQuestion(name: "www.slow.example", port: 4001, id: 9))
    scene.ask(ClientQuestion(name: "www.slow.example", port: 4000, id: 10))
    scene.ask(ClientQuestion(name: "www.slow.example", client: 2, port: 4000, id: 9))
    #expect(scene.queries.inUse == 4)
    loop.advance(by: .seconds(10))
    #expect(scene.transactions.reduce(0) { $0 + $1.replies.count } == 4)
  }

  @Test func `an answer for thousands of clients is sent in parts`() {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1"), after: .milliseconds(50))
    }
    let scene = ResolverScene(on: loop, [provider])
    for number in 0..<2500 { scene.ask("www.example.com", client: UInt16(number + 1)) }
    loop.advance(by: .seconds(1))
    #expect(scene.transactions.allSatisfy { $0.replies.first?.message.addresses == ["192.0.2.1"] })
    #expect(scene.queries.inUse == 0)
    #expect(scene.resolver.assumeIsolated { $0.admission.isQuiet })
  }
}
