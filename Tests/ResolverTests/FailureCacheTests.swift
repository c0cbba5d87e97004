// FailureCacheTests.swift -- questions without a verdict: waits that double, are forgotten, end with an outage, and cannot pile up.

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

@Suite struct FailureCacheTests {
  private let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 16))
  private let begin = BootInstant(nanoseconds: 0)
  private let reason = UpstreamFailure(.networkError, "no answer", .nextServer)

  private func key(_ text: String, _ type: RecordType = .a) -> QuestionKey {
    var octets = name(text).octets
    let length = octets.count
    octets += [UInt8](repeating: 0, count: CacheKey.longest - length)
    let scope = CacheScope(type: type.rawValue, dnssecOK: false, checkingDisabled: false, route: 0, network: 0)
    return octets.withUnsafeMutableBufferPointer {
      QuestionKey(cache.key(in: $0.baseAddress!, nameLength: length, scope))
    }
  }

  /// The verdicts of an upstream that gave one then, for the first time after a silence if that is wanted.
  private func verdict(at now: BootInstant, isFirst: Bool = false) -> VerdictTimes {
    var patience = Patience()
    _ = patience.gaveVerdict(on: .none, of: .ourselves, after: .zero, wasAway: isFirst, now: now)
    return patience.verdicts
  }

  /// An upstream that answers other questions all the time.
  private var busy: VerdictTimes { verdict(at: BootInstant(nanoseconds: .max)) }

  private func waits(
    _ failures: inout FailureCache, _ text: String = "a.example", _ type: RecordType = .a, at upstream: Int = 0,
    with verdicts: VerdictTimes? = nil, domain: Int = 1, takesTrial: Bool = false, now: BootInstant
  ) -> Bool {
    failures.failure(
      of: key(text, type), at: upstream, DomainKey(value: UInt64(domain)), verdicts ?? busy, takesTrial: takesTrial,
      now: now) != nil
  }

  private func fail(
    _ failures: inout FailureCache, _ text: String = "a.example", at upstream: Int = 0,
    with verdicts: VerdictTimes? = nil,
    now: BootInstant
  ) {
    failures.failed(key(text), at: upstream, reason, verdicts ?? busy, now: now)
  }

  @Test func `waits double from one second to the longest`() {
    var failures = FailureCache(longestWait: .seconds(300))
    var now = begin
    for expected in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
      fail(&failures, now: now)
      #expect(waits(&failures, now: now + .seconds(expected) + .nanoseconds(-1)))
      #expect(!waits(&failures, now: now + .seconds(expected)))
      now = now + .seconds(expected)
    }
  }

  @Test func `making room costs a few steps per failure, also if hardly any has expired`() {
    var failures = FailureCache(longestWait: .seconds(300))
    // One in a hundred has been over for long when the table is full, the others never are.
    for number in 0..<20_000 {
      fail(&failures, "n\(number).example", now: begin + .milliseconds(number % 100 == 0 ? 0 : 60_000))
    }
    #expect(failures.count <= 4096)
    #expect(failures.steps <= 20_000 * 10)
  }

  @Test func `the wait after a failure is at least one second for any configuration`() {
    var failures = FailureCache(longestWait: .zero)
    fail(&failures, now: begin)
    #expect(waits(&failures, now: begin + .milliseconds(999)))
    #expect(!waits(&failures, now: begin + .seconds(1)))
  }

  @Test func `a failure belongs to one question at one upstream, and a verdict ends it there`() {
    var failures = FailureCache(longestWait: .seconds(300))
    for text in ["a.example", "b.example"] { fail(&failures, text, now: begin) }
    fail(&failures, at: 1, now: begin)
    failures.succeeded(key("a.example"), at: 0)
    #expect(!waits(&failures, now: begin))
    #expect(waits(&failures, at: 1, now: begin))
    #expect(!waits(&failures, at: FailureCache.localDNS, now: begin))
    #expect(waits(&failures, "b.example", now: begin))
    #expect(!waits(&failures, "b.example", .aaaa, now: begin))
    fail(&failures, now: begin + .seconds(2))
    #expect(!waits(&failures, now: begin + .seconds(3)))
  }

  @Test func `a failure of long ago does not lengthen the wait after a new one`() {
    var failures = FailureCache(longestWait: .seconds(300))
    var now = begin
    for wait in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
      fail(&failures, now: now)
      now = now + .seconds(wait)
    }
    now = now + .seconds(86_400)
    fail(&failures, now: now)
    #expect(!waits(&failures, now: now + .seconds(1)))
  }

  @Test func `a client that asks every five seconds does not hold the waits down`() {
    var failures = FailureCache(longestWait: .seconds(300))
    var asked = 0
    for second in stride(from: 0, to: 3600, by: 5) {
      let now = begin + .seconds(second)
      guard !waits(&failures, now: now) else { continue }
      fail(&failures, now: now)
      asked += 1
    }
    #expect(asked < 25)
  }

  @Test func `the number of remembered failures is bounded, and what is forgotten is asked again`() {
    var failures = FailureCache(longestWait: .seconds(300))
    for number in 0..<20_000 {
      fail(&failures, "host\(number).example", now: begin + .milliseconds(number))
      #expect(failures.count <= 4096)
    }
    // The latest is among them.
    #expect(waits(&failures, "host19999.example", now: begin + .milliseconds(19_999)))
    #expect(!waits(&failures, "host0.example", now: begin + .milliseconds(500)))
  }

  @Test func `the first verdict after a silence ends all failures of that upstream, and their doubling`() {
    var failures = FailureCache(longestWait: .seconds(300))
    var now = begin
    for wait in [1, 2, 4, 8] {
      fail(&failures, now: now)
      now = now + .seconds(wait)
    }
    fail(&failures, now: now)
    fail(&failures, at: 1, now: now)
    let back = verdict(at: now + .seconds(1), isFirst: true)
    #expect(!waits(&failures, with: back, now: now + .seconds(1)))
    #expect(waits(&failures, at: 1, now: now))
    fail(&failures, with: back, now: now + .seconds(2))
    #expect(waits(&failures, with: back, now: now + .milliseconds(2999)))
    #expect(!waits(&failures, with: verdict(at: now + .seconds(100)), now: now + .seconds(3)))
  }

  @Test func `a verdict between other questions ends nothing`() {
    var failures = FailureCache(longestWait: .seconds(300))
    for second in [0, 1] { fail(&failures, now: begin + .seconds(second)) }
    #expect(waits(&failures, with: verdict(at: begin + .seconds(2)), now: begin + .milliseconds(2500)))
  }

  @Test func `while there was no verdict since, one question each half second is sent all the same, a domain each two`()
  {
    var failures = FailureCache(longestWait: .seconds(300))
    let none = VerdictTimes()
    for number in 0..<5 {
      for second in [0, 1, 3, 7] { fail(&failures, "n\(number).example", with: none, now: begin + .seconds(second)) }
    }
    // The last failures are at least a second old (RFC 9520 section 3.2).
    #expect(waits(&failures, "n0.example", with: none, now: begin + .milliseconds(7999)))
    var sent: [Int] = []
    for step in 0..<40 {
      let now = begin + .seconds(8) + .milliseconds(step * 100)
      for number in 0..<5
      where !waits(&failures, "n\(number).example", with: none, domain: number, takesTrial: true, now: now) {
        sent.append(step * 100)
      }
    }
    #expect(sent == [0, 500, 1000, 1500, 2000, 2500, 3000, 3500])
    var alone: [Int] = []
    for step in 0..<60 {
      for second in [8] where step == 0 { fail(&failures, "n0.example", with: none, now: begin + .seconds(second)) }
      let now = begin + .seconds(13) + .milliseconds(step * 100)
      if !waits(&failures, "n0.example", with: none, domain: 0, takesTrial: true, now: now) { alone.append(step * 100) }
    }
    #expect(alone == [0, 2000, 4000])
    // If another client has had a verdict since, its wait counts.
    #expect(waits(&failures, "n0.example", with: verdict(at: begin + .seconds(14)), now: begin + .seconds(15)))
  }
}

@Suite struct FailureBackOffTests {
  let loop = SimulatedLoop()

  @Test func `a question that fails is asked again after 1, 2, 4 … 300 s, and answered SERVFAIL in between`() throws {
    var works = false
    let provider = ScriptedUpstream(on: loop) { question, _ in
      works
        ? .answer(.addresses(question.name, "192.0.2.1"), after: .zero)
        : .failure(.networkError, .nextUpstream, after: .zero)
    }
    provider.patience = Patience()
    // It answers other questions meanwhile, so that nothing is sent in spite of a wait.
    _ = provider.patience.gaveVerdict(
      on: .none, of: .ourselves, after: .zero, wasAway: false, now: BootInstant(nanoseconds: .max))
    let scene = ResolverScene(on: loop, [provider]) { settings in
      // Bounds on TTLs are for answers, never for failures.
      for index in settings.routes.indices { settings.routes[index].ttl.lowest = 600 }
    }
    var asked = 0
    for wait in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
      #expect(try scene.answer("www.example.com").extendedError == .networkError)
      asked += 1
      for _ in 0..<2 {
        let number = scene.ask("www.example.com")
        let reply = try scene.reply(number)
        #expect(reply.after == .zero)
        #expect(reply.message.responseCode == .servFail)
        #expect(reply.message.extendedError == .cachedError)
        loop.advance(by: .milliseconds(wait * 500) - .milliseconds(1))
      }
      #expect(try scene.reply(scene.ask("www.example.com")).message.extendedError == .cachedError)
      #expect(provider.asked.count == asked)
      loop.advance(by: .milliseconds(2))
    }
    works = true
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    loop.advance(by: .seconds(600))
    works = false
    #expect(try scene.answer("www.example.com").extendedError == .networkError)
    loop.advance(by: .seconds(1))
    works = true
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
  }

  @Test func `one question's failure is not another's`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      question.name == name("bad.example") ? .failure() : .answer(.addresses(question.name, "192.0.2.1"))
    }
    let scene = ResolverScene(on: loop, [provider])
    #expect(try scene.answer("bad.example").responseCode == .servFail)
    #expect(try scene.answer("good.example").addresses == ["192.0.2.1"])
    #expect(try scene.answer("bad.example", .aaaa).extendedError == .networkError)
  }

  @Test func `a cached answer is served despite later failures`() throws {
    let provider = ScriptedUpstream(on: loop) { question, index in
      index == 0 ? .answer(.addresses(question.name, "192.0.2.1")) : .failure()
    }
    let scene = ResolverScene(on: loop, [provider])
    _ = try scene.answer("www.example.com")
    let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
    let failed = loop.run { [resolver = scene.resolver] in
      await resolver.resolve(question, route: 0, fresh: true)
    }
    #expect(failed.failure != nil)
    #expect(failed.lifetime == 0)
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
  }
}
