// ResolverOverloadTests.swift -- more questions than may be in flight: refused at once, and nothing grows.

import DNSWire
import EventLoop
import Glibc
import HTTPClient
import HTTPDNS
import LocalDNS
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverOverloadTests {
  let loop = SimulatedLoop()

  @Test func `beyond max_in_flight a question gets SERVFAIL at once, and the next ones are served again`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1"), after: .milliseconds(500))
    }
    let scene = ResolverScene(on: loop, [provider]) { $0.listen.maxInFlight = 4 }
    let inside = (0..<4).map { scene.ask("host\($0).example") }
    let beyond = scene.ask("host4.example")
    let joins = scene.ask("host0.example", client: 2)
    let refused = try scene.reply(beyond)
    #expect(refused.after == .zero)
    #expect(refused.message.responseCode == .servFail)
    #expect(refused.message.extendedError == .other)
    #expect(scene.counters.overflows == 1)
    loop.advance(by: .seconds(1))
    for number in inside + [joins] { #expect(try scene.reply(number).message.addresses == ["192.0.2.1"]) }
    #expect(scene.inFlight == 0)
    // The refusal was no failure of the question: it may be asked again at once.
    #expect(try scene.answer("host4.example").addresses == ["192.0.2.1"])
    #expect(provider.asked.count == 5)
  }

  @Test func `a failure by our own limits is not remembered: the question may be asked again at once`() throws {
    let busy = UpstreamFailure(.other, "no free connection", .ours)
    let steps = [
      ScriptedStep(latency: .milliseconds(20), result: .failure(busy)),
      ScriptedStep(latency: .milliseconds(20), result: .failure(busy)),
      .failure(.other),
    ]
    let provider = ScriptedUpstream(on: loop) { _, number in steps[number] }
    let scene = ResolverScene(on: loop, [provider])
    for asked in 1...3 {
      #expect(try scene.answer("www.example.com").extendedError == .other)
      #expect(provider.asked.count == asked)
    }
    // The third failure was the provider's own.
    #expect(try scene.answer("www.example.com").extendedError == .cachedError)
    #expect(provider.asked.count == 3)
    #expect(scene.counters.failures == 3)
  }

  @Test(arguments: [true, false])
  func `a failure of LocalDNS is remembered only if LocalDNS caused it`(
    isOurs: Bool
  ) throws {
    let failure = UpstreamFailure(.networkError, "no socket", isOurs ? .ours : .nextUpstream)
    let local = ScriptedLocalDNS(on: loop) { _, _ in
      ScriptedStep(latency: .milliseconds(1), result: .failure(failure))
    }
    // A single label is a name of the network: no provider is asked.
    let scene = ResolverScene(on: loop, [], local: local)
    for _ in 0..<2 { #expect(try scene.answer("intranet").responseCode == .servFail) }
    #expect(local.asked.count == (isOurs ? 2 : 1))
  }

  @Test func `without a free slot a query gets SERVFAIL at once`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.1")) }
    let scene = ResolverScene(on: loop, [provider], slots: 2)
    let numbers = (1...3).map { scene.ask("www.example.com", client: $0) }
    #expect(try scene.reply(numbers[2]).message.extendedError == .other)
    loop.advance(by: .seconds(1))
    #expect(try scene.reply(numbers[1]).message.addresses == ["192.0.2.1"])
    #expect(scene.queries.inUse == 0)
  }

  /// A hundredth of 10,000 questions a second on a hundredth of the default bounds, for ten minutes; and the full rate
  /// on the full bounds for two seconds, or with `HTTPDNSD_TEST_LONG` in the environment for ten minutes (virtual ones;
  /// three real ones). In a process of its own, whose memory no other test uses.
  @Test(
    arguments: [
      Load(perSecond: 100, inFlight: 10, seconds: 600),
      Load(perSecond: 10_000, inFlight: 1024, seconds: getenv("HTTPDNSD_TEST_LONG") == nil ? 2 : 600),
    ])
  func `a provider that stalls under ever different questions lets nothing grow`(load: Load) async {
    await #expect(processExitsWith: .success) { [load] in ResolverOverloadTests.stall(under: load) }
  }

  /// How much is asked for, and for how long.
  struct Load: Codable, Sendable {
    var perSecond: Int
    var inFlight: Int
    var seconds: Int
  }

  private static func stall(under load: Load) {
    let loop = SimulatedLoop()
    let provider = ScriptedUpstream(on: loop) { _, _ in .silence }
    provider.remembers = false
    let local = ScriptedLocalDNS(on: loop) { _, _ in .silence }
    local.isThere = false
    let slots = load.inFlight * 4
    let scene = ResolverScene(on: loop, [provider], local: local, slots: slots) {
      $0.listen.maxInFlight = load.inFlight
    }
    scene.onlyCount()
    let ticks = load.seconds * 10
    var settled = 0
    var number = 0
    for tick in 0..<ticks {
      for _ in 0..<load.perSecond / 10 {
        scene.ask(ClientQuestion(name: "host\(number).example", client: UInt16(number % 5000)))
        number += 1
      }
      loop.advance(by: .milliseconds(100))
      if tick == ticks / 4 { settled = residentOctets() }
      guard tick % 10 == 0 else { continue }
      let sizes = scene.resolver.assumeIsolated { ($0.inFlight.count, $0.questionsInFlight, $0.memory.count) }
      #expect(sizes.0 <= load.inFlight)
      #expect(sizes.1 <= load.inFlight)
      #expect(sizes.2 <= 4096)
      #expect(scene.queries.inUse <= load.inFlight)
      // Each has one, and so has each transfer, those of questions that have lost their place among them.
      #expect(loop.timers.count <= 3 * load.inFlight)
      #expect(scene.cache.usage.entries == 0)
    }
    #expect(residentOctets() - settled < 24 << 20)
    loop.advance(by: .seconds(5))
    #expect(scene.tally == ReplyTally(queries: number, replies: number, servFails: number, silentServFails: 0))
    #expect(scene.inFlight == 0)
    #expect(loop.timers.count == 0)
    provider.script = { question, _ in .answer(.addresses(question.name, "192.0.2.1")) }
    scene.ask("after.example")
    loop.advance(by: .seconds(1))
    #expect(scene.tally.servFails == number)
    #expect(scene.tally.replies == number + 1)
  }
}
