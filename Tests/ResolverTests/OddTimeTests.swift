// OddTimeTests.swift -- a wall clock that jumps by years, and a machine that sleeps for a week: answers stay what they are.

import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Resolver
@testable import Upstreams

@Suite struct `A clock that jumps` {
  private static let year: Int64 = 31_557_600

  @Test(arguments: [20, -20, 110, -56]) func `by years changes no TTL and asks for nothing`(years: Int64) throws {
    let loop = SimulatedLoop()
    let provider = ScriptedUpstream("json", on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.1")) }
    let scene = ResolverScene(on: loop, [provider])
    let ttl = try #require(try scene.answer("www.example.com").answers.first?.ttl)
    loop.advance(by: .seconds(10))
    loop.wallOffset += years * Self.year
    loop.advance(by: .seconds(10))
    let answer = try scene.answer("www.example.com")
    #expect(answer.addresses == ["192.0.2.1"] && answer.answers.first?.ttl == ttl - 20)
    #expect(provider.asked.count == 1)
    // And a name that is new.
    #expect(try scene.answer("new.example.com").addresses == ["192.0.2.1"])
    loop.wallOffset -= years * Self.year
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    #expect(provider.asked.count == 2)
  }
}

@Suite struct `A machine that sleeps` {
  @Test(arguments: [7, 3_650]) func `for days asks once for each name afterwards`(days: Int64) throws {
    let loop = SimulatedLoop()
    let provider = ScriptedUpstream("json", on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.1")) }
    let scene = ResolverScene(on: loop, [provider])
    let ttl = try #require(try scene.answer("www.example.com").answers.first?.ttl)
    provider.script = { question, _ in .answer(.addresses(question.name, "192.0.2.2")) }
    loop.sleep(through: .seconds(days * 86_400))
    let answer = try scene.answer("www.example.com")
    #expect(answer.addresses == ["192.0.2.2"] && answer.answers.first?.ttl == ttl)
    loop.advance(by: .seconds(10))
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.2"])
    #expect(provider.asked.count == 2)
  }
}
