// ResolverTimingTests.swift -- slow and silent upstreams: who is asked when, and by when every client has its answer.

import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverTimingTests {
  let loop = SimulatedLoop()
  private let begin = SimulatedLoop().now

  private func provider(_ step: ScriptedStep, _ label: String = "first") -> ScriptedUpstream {
    ScriptedUpstream(label, on: loop) { _, _ in step }
  }

  private func localDNS(_ step: ScriptedStep) -> ScriptedLocalDNS { ScriptedLocalDNS(on: loop) { _, _ in step } }

  private func addresses(_ text: String, ttl: UInt32 = 300) -> HTTPDNSAnswer {
    .addresses(name("www.example.com"), text, ttl: ttl)
  }

  @Test func `LocalDNS is asked after one second, and the provider's timely answer is preferred`() throws {
    let provider = provider(.answer(addresses("192.0.2.1"), after: .milliseconds(1700)))
    let local = localDNS(.answer(addresses("198.51.100.1")))
    let scene = ResolverScene(on: loop, [provider], local: local)
    let number = scene.ask("www.example.com")
    loop.advance(by: .milliseconds(999))
    #expect(local.asked.isEmpty)
    loop.advance(by: .seconds(2))
    #expect(local.asked.map { $0.at - begin } == [.seconds(1)])
    let reply = try scene.reply(number)
    #expect(reply.message.addresses == ["192.0.2.1"])
    #expect(reply.after == .milliseconds(1700))
    #expect(try scene.answer("www.example.com").answers[0].ttl > 60)
  }

  @Test func `LocalDNS is not asked beside a provider that answers within a second`() throws {
    let local = localDNS(.answer(addresses("198.51.100.1")))
    let scene = ResolverScene(
      on: loop, [provider(.answer(addresses("192.0.2.1"), after: .milliseconds(999)))], local: local)
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(10))
    #expect(local.asked.isEmpty)
    #expect(try scene.reply(number).after == .milliseconds(999))
  }

  @Test func `LocalDNS's answer is held until the provider's attempt has had its time`() throws {
    let local = localDNS(.answer(addresses("198.51.100.1")))
    let scene = ResolverScene(on: loop, [provider(.silence)], local: local)
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(10))
    let reply = try scene.reply(number)
    #expect(reply.message.addresses == ["198.51.100.1"])
    #expect(reply.after == .seconds(2))
    #expect(local.asked.count == 1)
    #expect(scene.inFlight == 0)
  }

  @Test func `LocalDNS's held answer is served at once when the provider fails`() throws {
    let local = localDNS(.answer(addresses("198.51.100.1")))
    let scene = ResolverScene(on: loop, [provider(.failure(after: .milliseconds(1500)))], local: local)
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(10))
    #expect(try scene.reply(number).after == .milliseconds(1500))
    #expect(try scene.reply(number).message.addresses == ["198.51.100.1"])
  }

  @Test func `LocalDNS's held answer is served in time for any timeout of the provider`() throws {
    let provider = provider(.silence)
    provider.traits.timeout = .seconds(10)
    provider.ignoresDeadline = true
    let scene = ResolverScene(on: loop, [provider], local: localDNS(.answer(addresses("198.51.100.1"))))
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(20))
    let reply = try scene.reply(number)
    #expect(reply.message.addresses == ["198.51.100.1"])
    #expect(reply.after <= .milliseconds(4500))
  }

  @Test func `a provider that fails quickly makes LocalDNS answer at once, for no longer than fallback allows`() throws
  {
    let local = localDNS(.answer(addresses("198.51.100.1"), after: .milliseconds(30)))
    let scene = ResolverScene(on: loop, [provider(.failure(after: .milliseconds(20)))], local: local)
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(10))
    let reply = try scene.reply(number)
    #expect(reply.after == .milliseconds(50))
    #expect(reply.message.answers.map(\.ttl) == [60])
    #expect(local.asked.count == 1)
    #expect(scene.toldFailures.map(\.name) == ["first"])
    loop.advance(by: .milliseconds(49_900))
    #expect(try scene.answer("www.example.com").answers[0].ttl <= 1)
    loop.advance(by: .seconds(1))
    _ = try scene.answer("www.example.com")
    #expect(local.asked.count == 2)
  }

  @Test func `a slow provider's answer is served if LocalDNS fails`() throws {
    let scene = ResolverScene(
      on: loop, [provider(.answer(addresses("192.0.2.1"), after: .milliseconds(1900)))], local: localDNS(.failure()))
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(10))
    #expect(try scene.reply(number).message.addresses == ["192.0.2.1"])
    #expect(try scene.reply(number).after == .milliseconds(1900))
  }

  @Test func `a provider's late answer is cached`() throws {
    let provider = provider(.answer(addresses("192.0.2.1"), after: .seconds(3)))
    provider.servers = 2
    let local = localDNS(.answer(addresses("198.51.100.1")))
    let scene = ResolverScene(on: loop, [provider], local: local)
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(10))
    #expect(try scene.reply(number).after == .seconds(2))
    #expect(try scene.reply(number).message.addresses == ["198.51.100.1"])
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    #expect(provider.asked.count == 1)
  }

  @Test func `an answer after SERVFAIL is cached and ends the remembered failure`() throws {
    let provider = provider(.answer(addresses("192.0.2.1"), after: .seconds(5)))
    provider.ignoresDeadline = true
    let scene = ResolverScene(on: loop, [provider])
    let number = scene.ask("www.example.com")
    loop.advance(by: .milliseconds(5001))
    #expect(try scene.reply(number).message.responseCode == .servFail)
    #expect(try scene.reply(number).after == .milliseconds(4400))
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    #expect(provider.asked.count == 1)
  }

  @Test func `LocalDNS's late answer does not replace the provider's`() throws {
    let provider = provider(.answer(addresses("192.0.2.1"), after: .milliseconds(1100)))
    let local = localDNS(.answer(addresses("198.51.100.1"), after: .milliseconds(500)))
    let scene = ResolverScene(on: loop, [provider], local: local)
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(5))
    #expect(try scene.reply(number).message.addresses == ["192.0.2.1"])
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    #expect(scene.inFlight == 0)
  }

  @Test func `if every upstream fails, all waiting clients get SERVFAIL with a reason`() throws {
    let local = localDNS(.failure(.noReachableAuthority, after: .milliseconds(400)))
    let scene = ResolverScene(on: loop, [provider(.failure(after: .milliseconds(300)))], local: local)
    let first = scene.ask("www.example.com", client: 1)
    loop.advance(by: .milliseconds(600))
    let second = scene.ask("www.example.com", client: 2)
    loop.advance(by: .seconds(5))
    for number in [first, second] {
      let reply = try scene.reply(number)
      #expect(reply.message.responseCode == .servFail)
      #expect(reply.message.extendedError == .networkError)
    }
    #expect(try scene.reply(first).after == .milliseconds(700))
    #expect(try scene.reply(second).after == .milliseconds(100))
    #expect(scene.counters.failures == 1)
  }

  @Test func `if every upstream is silent, all waiting clients get SERVFAIL within 4.5 s`() throws {
    let patient = provider(.silence, "patient")
    patient.ignoresDeadline = true
    let scene = ResolverScene(on: loop, [patient], local: localDNS(.silence))
    for client in 1...43 {
      scene.ask("www.example.com", client: UInt16(client))
      loop.advance(by: .milliseconds(100))
    }
    loop.advance(by: .seconds(1))
    for number in 0..<43 {
      let reply = try scene.reply(number)
      #expect(reply.message.responseCode == .servFail)
      #expect(reply.message.extendedError == .noReachableAuthority)
      #expect(reply.after <= .milliseconds(4500))
    }
  }

  @Test func `the second provider answers if the first one fails`() throws {
    let second = provider(.answer(addresses("192.0.2.2")), "second")
    let scene = ResolverScene(on: loop, [provider(.failure()), second])
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.2"])
    #expect(scene.toldFailures.map(\.name) == ["first"])
  }

  @Test func `a provider of many silent servers leaves the next one the time to answer`() throws {
    let silent = provider(.silence)
    silent.servers = 3
    let second = provider(.answer(addresses("192.0.2.2"), after: .milliseconds(300)), "second")
    let scene = ResolverScene(on: loop, [silent, second])
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(10))
    let reply = try scene.reply(number)
    #expect(reply.message.addresses == ["192.0.2.2"])
    #expect(reply.after <= .milliseconds(4500))
  }

  @Test func `a provider's SERVFAIL and REFUSED are failures, and the next one is asked`() throws {
    for code in [ResponseCode.servFail, .refused] {
      let loop = SimulatedLoop()
      let failing = ScriptedUpstream(on: loop) { _, _ in .answer(HTTPDNSAnswer(responseCode: code)) }
      let second = ScriptedUpstream("second", on: loop) { _, _ in .answer(addresses("192.0.2.2")) }
      #expect(try ResolverScene(on: loop, [failing, second]).answer("www.example.com").addresses == ["192.0.2.2"])
      let alone = try ResolverScene(on: loop, [failing]).answer("www.example.com")
      #expect(alone.responseCode == .servFail)
      #expect(alone.extendedError == .other)
    }
  }
}
