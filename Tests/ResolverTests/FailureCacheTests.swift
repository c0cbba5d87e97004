// FailureCacheTests.swift -- questions that failed: waits that double, are forgotten, and cannot pile up.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct FailureCacheTests {
  private let cache = MessageCache(CacheBounds(maxOctets: 1 << 20, maxEntries: 16))
  private let begin = BootInstant(nanoseconds: 0)

  private func key(_ text: String, _ type: RecordType = .a) -> QuestionKey {
    var octets = name(text).octets
    let length = octets.count
    octets += [UInt8](repeating: 0, count: CacheKey.longest - length)
    let scope = CacheScope(type: type.rawValue, dnssecOK: false, checkingDisabled: false, route: 0, network: 0)
    return octets.withUnsafeMutableBufferPointer {
      QuestionKey(cache.key(in: $0.baseAddress!, nameLength: length, scope))
    }
  }

  @Test func `waits double from one second to the longest`() {
    var failures = FailureCache(longestWait: .seconds(300))
    var now = begin
    for expected in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
      failures.failed(key("a.example"), .server, reason: "no answer", now: now)
      #expect(failures.isWaiting(key("a.example"), now: now + .seconds(expected) + .nanoseconds(-1)))
      #expect(!failures.isWaiting(key("a.example"), now: now + .seconds(expected)))
      now = now + .seconds(expected)
    }
  }

  @Test func `making room costs a few steps per failure, also if hardly any has expired`() {
    var failures = FailureCache(longestWait: .seconds(300))
    // One in a hundred has been over for long when the table is full, the others never are.
    for number in 0..<20_000 {
      failures.failed(
        key("n\(number).example"), .answer, reason: "no answer",
        now: begin + .milliseconds(number % 100 == 0 ? 0 : 60_000))
    }
    #expect(failures.count <= 4096)
    #expect(failures.steps <= 20_000 * 10)
  }

  @Test func `the wait after a failure is at least one second for any configuration`() {
    var failures = FailureCache(longestWait: .zero)
    failures.failed(key("a.example"), .server, reason: "no answer", now: begin)
    #expect(failures.isWaiting(key("a.example"), now: begin + .milliseconds(999)))
    #expect(!failures.isWaiting(key("a.example"), now: begin + .seconds(1)))
  }

  @Test func `an answer ends the waits of its question, and of no other`() {
    var failures = FailureCache(longestWait: .seconds(300))
    for text in ["a.example", "b.example"] { failures.failed(key(text), .server, reason: "no answer", now: begin) }
    failures.failed(key("a.example"), .server, reason: "no answer", now: begin + .seconds(1))
    failures.succeeded(key("a.example"))
    #expect(!failures.isWaiting(key("a.example"), now: begin))
    #expect(failures.isWaiting(key("b.example"), now: begin))
    #expect(!failures.isWaiting(key("b.example", .aaaa), now: begin))
    failures.failed(key("a.example"), .server, reason: "no answer", now: begin + .seconds(2))
    #expect(!failures.isWaiting(key("a.example"), now: begin + .seconds(3)))
  }

  @Test func `a failure of long ago does not lengthen the wait after a new one`() {
    var failures = FailureCache(longestWait: .seconds(300))
    var now = begin
    for wait in [1, 2, 4, 8, 16, 32, 64, 128, 256] {
      failures.failed(key("a.example"), .server, reason: "no answer", now: now)
      now = now + .seconds(wait)
    }
    now = now + .seconds(86_400)
    failures.failed(key("a.example"), .server, reason: "no answer", now: now)
    #expect(!failures.isWaiting(key("a.example"), now: now + .seconds(1)))
  }

  @Test func `a client that asks every five seconds does not hold the waits down`() {
    var failures = FailureCache(longestWait: .seconds(300))
    var asked = 0
    for second in stride(from: 0, to: 3600, by: 5) {
      let now = begin + .seconds(second)
      guard !failures.isWaiting(key("a.example"), now: now) else { continue }
      failures.failed(key("a.example"), .server, reason: "no answer", now: now)
      asked += 1
    }
    #expect(asked < 25)
  }

  @Test func `the number of remembered failures is bounded`() {
    var failures = FailureCache(longestWait: .seconds(300))
    for number in 0..<20_000 {
      failures.failed(key("host\(number).example"), .server, reason: "no answer", now: begin + .milliseconds(number))
      #expect(failures.count <= 4096)
    }
    // The latest is among them.
    #expect(failures.isWaiting(key("host19999.example"), now: begin + .milliseconds(19_999)))
  }
}

@Suite struct FailureBackOffTests {
  let loop = SimulatedLoop()

  @Test func `a question that fails is asked again after 1, 2, 4 … 300 s, and answered SERVFAIL in between`() throws {
    var works = false
    let provider = ScriptedUpstream(on: loop) { question, _ in
      works
        ? .answer(.addresses(question.name, "192.0.2.1"), after: .zero) : .failure(.networkError, .answer, after: .zero)
    }
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
