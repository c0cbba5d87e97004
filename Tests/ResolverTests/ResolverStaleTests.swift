// ResolverStaleTests.swift -- stale data without a fresh answer (RFC 8767): when, how old, and what it looks like.

import Configuration
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

@Suite struct `Stale data on failure` {
  @Test(arguments: [ScriptedStep.silence, .failure()])
  func `stale data is never served if it is off`(step: ScriptedStep) throws {
    let stale = StaleScene(.tested(.off))
    try stale.keep()
    stale.providerNow { _ in step }
    #expect(try stale.reply().message.responseCode == .servFail)
    #expect(stale.scene.counters.stale == 0)
  }

  @Test(arguments: [
    (RecordType.txt, [UInt8]()), (.https, [0, 1, 0, 0, 3, 0, 2, 0x20, 0xFB, 0, 1, 0, 3, 2, 0x68, 0x32]),
  ])
  func `RDATA that breaks a rule of its type comes through, from the cache and as stale data too`(
    type: RecordType, rdata: [UInt8]
  ) throws {
    let stale = StaleScene(.tested(.onFailure))
    stale.provider.script = { question, _ in
      let record = ResourceRecord(owner: question.name, type: type, ttl: 60, rdata: rdata)
      return .answer(HTTPDNSAnswer(responseCode: .noError, answers: [record]))
    }
    for _ in 0..<2 { #expect(try stale.scene.answer("www.example.com", type).answers.map(\.rdata) == [rdata]) }
    #expect(stale.provider.asked.count == 1)
    stale.loop.advance(by: .seconds(61))
    stale.provider.script = { _, _ in .failure() }
    let answer = try stale.scene.answer("www.example.com", type)
    #expect(answer.answers.map(\.rdata) == [rdata] && answer.extendedError == .staleAnswer)
  }

  @Test(arguments: [500, 1800, 3000]) func `stale data is served after exactly stale_wait if the provider is silent`(
    wait: Int
  )
    throws
  {
    var policy = StalePolicy.tested(.onFailure)
    policy.wait = .milliseconds(wait)
    let stale = StaleScene(policy)
    stale.provider.servers = 3
    try stale.keep()
    stale.providerNow { _ in .silence }
    let reply = try stale.reply()
    expectStale(reply.message)
    #expect(reply.after == .milliseconds(wait))
    #expect(stale.scene.counters.stale == 1)
    #expect(stale.scene.counters.failures == 0)
  }

  @Test func `stale data is served to all waiting clients, whenever they came`() throws {
    let stale = StaleScene()
    try stale.keep()
    stale.providerNow { _ in .silence }
    let first = stale.scene.ask("www.example.com", client: 1)
    stale.loop.advance(by: .milliseconds(1500))
    let second = stale.scene.ask("www.example.com", client: 2)
    stale.loop.advance(by: .seconds(10))
    #expect(try stale.scene.reply(first).after == .milliseconds(1800))
    #expect(try stale.scene.reply(second).after == .milliseconds(300))
    expectStale(try stale.scene.reply(second).message)
  }

  @Test func `stale data has a TTL of stale_ttl at most, or its own`() throws {
    let stale = StaleScene()
    let target = name("web.example.net")
    stale.providerNow { [www = stale.www] _ in
      .answer(
        HTTPDNSAnswer(
          responseCode: .noError,
          answers: [
            .alias(www, target, ttl: 600),
            ResourceRecord(owner: target, type: .a, ttl: 20, rdata: [192, 0, 2, 1]),
          ]))
    }
    try stale.keep()
    stale.providerNow { _ in .failure() }
    // The resolver's own, then the listener's.
    for _ in 0..<2 { #expect(try stale.scene.answer("www.example.com").answers.map(\.ttl) == [30, 20]) }
    #expect(stale.provider.count == 2)
  }

  @Test func `serving stale data does not end the attempt, whose late answer is cached`() throws {
    let stale = StaleScene()
    try stale.keep()
    stale.provider.servers = 2
    stale.providerNow(has: "192.0.2.2", after: .seconds(3))
    expectStale(try stale.reply().message)
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.2"])
    #expect(stale.provider.count == 2)
    #expect(stale.scene.inFlight == 0)
  }

  @Test func `stale data is served at once if the provider fails at once`() throws {
    let stale = StaleScene()
    try stale.keep()
    stale.providerNow { _ in .failure(after: .milliseconds(20)) }
    let reply = try stale.reply()
    expectStale(reply.message)
    #expect(reply.after == .milliseconds(20))
  }

  @Test func `LocalDNS's held answer is preferred to stale data`() throws {
    let stale = StaleScene(hasLocal: true)
    try stale.keep()
    stale.providerNow { _ in .silence }
    let reply = try stale.reply()
    expectFresh(reply.message, ["198.51.100.1"])
    #expect(reply.after == .milliseconds(1800))
  }

  @Test func `LocalDNS's answer is preferred to stale data if the provider fails at once`() throws {
    let stale = StaleScene(hasLocal: true)
    try stale.keep()
    stale.providerNow { _ in .failure() }
    expectFresh(try stale.reply().message, ["198.51.100.1"])
  }

  @Test func `stale data is served if LocalDNS is too slow, whose answer is cached`() throws {
    let stale = StaleScene(hasLocal: true)
    try stale.keep()
    stale.providerNow { _ in .silence }
    stale.local.script = { question, _ in
      .answer(.addresses(question.name, "198.51.100.2"), after: .milliseconds(1200))
    }
    let reply = try stale.reply()
    expectStale(reply.message)
    #expect(reply.after == .milliseconds(1800))
    expectFresh(try stale.scene.answer("www.example.com"), ["198.51.100.2"])
  }

  @Test func `stale data is no older than stale_max_age`() throws {
    let stale = StaleScene(.tested(.onFailure, maxAge: 100))
    try stale.keep(thenWait: 0)
    stale.loop.advance(by: .seconds(159))
    stale.providerNow { _ in .failure(after: .zero) }
    expectStale(try stale.scene.answer("www.example.com"))
    stale.loop.advance(by: .milliseconds(999))
    let end = stale.scene.transactions[0].replies[0].at + .seconds(160)
    stale.loop.advance(by: end - stale.loop.now + .nanoseconds(-1))
    expectStale(try stale.scene.answer("www.example.com"))
    stale.loop.advance(by: .nanoseconds(1))
    #expect(try stale.scene.answer("www.example.com").responseCode == .servFail)
  }

  @Test func `stale data evicted during the wait leaves the provider the usual time`() throws {
    let stale = StaleScene()
    try stale.keep()
    stale.provider.servers = 2
    stale.providerNow(has: "192.0.2.2", after: .seconds(3))
    let number = stale.scene.ask("www.example.com")
    stale.loop.advance(by: .seconds(1))
    stale.scene.cache.removeAll()
    stale.loop.advance(by: .seconds(10))
    let reply = try stale.scene.reply(number)
    expectFresh(reply.message, ["192.0.2.2"])
    #expect(reply.after == .seconds(3))
  }

  @Test func `stale NXDOMAIN and stale addresses have different extended errors`() throws {
    let stale = StaleScene()
    let zone = name("example.com")
    for (code, error) in [(ResponseCode.nxDomain, ExtendedError.staleNXDomain), (.noError, .staleAnswer)] {
      let asked = "\(code).example.com"
      stale.providerNow { _ in .answer(.negative(code, zone: zone)) }
      _ = try stale.scene.answer(asked)
      stale.loop.advance(by: .seconds(31))
      stale.providerNow { _ in .failure() }
      for _ in 0..<2 {
        let message = try stale.scene.answer(asked)
        #expect(message.responseCode == code)
        #expect(message.extendedError == error)
        #expect(message.answers.isEmpty)
        #expect(message.authorities.map(\.type) == [.soa])
        #expect(message.authorities[0].ttl == 30)
      }
    }
    #expect(stale.provider.count == 4)
  }

  @Test func `stale data is served if too many questions are in flight, and no failure is cached`() throws {
    let stale = StaleScene { $0.listen.maxInFlight = 1 }
    try stale.keep()
    stale.providerNow(has: "192.0.2.2", after: .seconds(1))
    stale.scene.ask("other.example.com")
    let number = stale.scene.ask("www.example.com")
    expectStale(try stale.scene.reply(number).message)
    #expect(try stale.scene.reply(number).after == .zero)
    stale.loop.advance(by: .seconds(2))
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.2"])
  }

  @Test func `stale data caused by our own limits is not remembered as a failure`() throws {
    let stale = StaleScene()
    try stale.keep()
    let busy = UpstreamFailure(.other, "no free connection", .ours)
    stale.providerNow { _ in ScriptedStep(latency: .milliseconds(20), result: .failure(busy)) }
    for asked in 2...4 {
      expectStale(try stale.scene.answer("www.example.com"))
      #expect(stale.provider.count == asked)
    }
  }

  @Test func `stale data is preferred to a remembered failure`() throws {
    let stale = StaleScene()
    stale.providerNow {
      $0.type == .a
        ? .failure(.networkError, .nextUpstream, after: .zero) : .answer(.negative(.nxDomain, ttl: 5, minimum: 5))
    }
    for wait in [1, 2, 4, 8, 16, 32] {
      #expect(try stale.scene.answer("www.example.com").extendedError == .networkError)
      if wait < 32 { stale.loop.advance(by: .seconds(wait)) }
    }
    #expect(try stale.scene.answer("www.example.com").extendedError == .cachedError)
    _ = try stale.scene.answer("www.example.com", .aaaa)
    stale.loop.advance(by: .seconds(31))
    _ = stale.provider.patience.gaveVerdict(
      on: .none, of: .ourselves, after: .zero, wasAway: false, now: stale.loop.now)
    let asked = stale.provider.count
    let message = try stale.scene.answer("www.example.com")
    #expect(message.responseCode == .nxDomain)
    #expect(message.extendedError == .staleNXDomain)
    #expect(stale.provider.count == asked)
  }

  @Test func `stale data belongs to its own DO and CD`() throws {
    let stale = StaleScene()
    let plain = ClientQuestion(name: "www.example.com")
    var others = [plain, plain, plain]
    others[0].dnssecOK = true
    others[1].checkingDisabled = true
    others[2].dnssecOK = true
    others[2].checkingDisabled = true
    for question in others { _ = try stale.scene.answer(question) }
    stale.loop.advance(by: .seconds(61))
    stale.providerNow { _ in .failure() }
    #expect(try stale.scene.answer(plain).responseCode == .servFail)
    for question in others + others { expectStale(try stale.scene.answer(question)) }
  }

  @Test func `stale data does not shorten a background fetch`() throws {
    let stale = StaleScene()
    try stale.keep()
    stale.provider.servers = 2
    stale.providerNow(has: "192.0.2.2", after: .seconds(3))
    let question = HTTPDNSQuestion(name: stale.www, type: .a)
    let answer = stale.loop.run { [resolver = stale.scene.resolver] in
      await resolver.resolve(question, route: 0, fresh: true)
    }
    #expect(answer.failure == nil)
    #expect(stale.scene.counters.stale == 0)
  }

  @Test func `stale data is served in time to a client that joins a background fetch`() throws {
    let stale = StaleScene()
    try stale.keep()
    stale.provider.servers = 2
    stale.providerNow { _ in .silence }
    let question = HTTPDNSQuestion(name: stale.www, type: .a)
    Task(executorPreference: stale.loop) { [resolver = stale.scene.resolver] in
      _ = await resolver.resolve(question, route: 0, fresh: true)
    }
    stale.loop.advance(by: .seconds(1))
    let reply = try stale.reply()
    expectStale(reply.message)
    #expect(reply.after == .milliseconds(1800))
    #expect(stale.provider.count == 2)
  }

  @Test func `a fresh entry whose refresh fails counts as fresh`() throws {
    let stale = StaleScene()
    try stale.keep(thenWait: 30)
    stale.providerNow { _ in .failure() }
    let question = HTTPDNSQuestion(name: stale.www, type: .a)
    _ = stale.loop.run { [resolver = stale.scene.resolver] in
      await resolver.resolve(question, route: 0, fresh: true)
    }
    #expect(stale.scene.counters.stale == 0)
    expectFresh(try stale.scene.answer("www.example.com"), ["192.0.2.1"])
  }
}

@Suite struct `Stale data of client subnets` {
  private func ask(_ subnet: String?) -> ClientQuestion {
    ClientQuestion(name: "www.example.com", subnet: subnet.map { IPPrefix(text: $0)! })
  }

  @Test(arguments: [0, 24]) func `stale data of a client subnet is served to that subnet only`(scope: Int) throws {
    let loop = SimulatedLoop()
    var works = true
    let provider = ScriptedUpstream(on: loop) { question, _ in
      guard works else { return .failure() }
      var answer = HTTPDNSAnswer.addresses(question.name, "192.0.2.1", ttl: 60)
      if question.clientSubnet != nil { answer.scopePrefixLength = scope }
      return .answer(answer)
    }
    provider.traits.clientSubnet = .fromClient
    let scene = ResolverScene(on: loop, [provider]) { $0.setStale(.tested(.onFailure)) }
    _ = try scene.answer(ask("203.0.7.0/24"))
    loop.advance(by: .seconds(61))
    works = false
    for _ in 0..<2 {
      let message = try scene.answer(ask("203.0.7.0/24"))
      expectStale(message)
      #expect(message.edns?.clientSubnet?.scope == UInt8(scope))
    }
    #expect(provider.count == 2)
    for subnet in ["203.0.9.0/24", nil] {
      let message = try scene.answer(ask(subnet))
      if scope == 0 {
        expectStale(message)
      } else {
        #expect(message.responseCode == .servFail)
      }
    }
  }
}
