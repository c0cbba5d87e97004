// ReserveTests.swift -- the last units of a day are for names in use, and a name has a bounded number of client subnets.

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

@Suite struct ReserveTests {
  let loop = SimulatedLoop()

  @Test func `a tenth of a hundred units is reserved for names in use`() {
    func isOpen(perDay: Int, spent: Int, reserve: Int) -> Bool {
      var budget = UnitBudget(perDay: perDay)
      budget.spend(spent, unixTime: 0, now: 0)
      return budget.isOpen(unixTime: 0, now: 0, reserve: reserve)
    }
    #expect(isOpen(perDay: 100, spent: 89, reserve: 10))
    #expect(!isOpen(perDay: 100, spent: 90, reserve: 10))
    #expect(isOpen(perDay: 100, spent: 90, reserve: 0))
    #expect(!isOpen(perDay: 100, spent: 100, reserve: 0))
    // A reserve of everything, and more, leaves nothing.
    #expect(!isOpen(perDay: 5, spent: 0, reserve: 9))
    // Without a limit there is nothing to keep.
    #expect(isOpen(perDay: 0, spent: 1000, reserve: 9))
  }

  @Test func `cached names are fetched while new ones are refused`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      question.name == name("none.example")
        ? .answer(.negative(.nxDomain)) : .answer(.addresses(question.name, "192.0.2.1", ttl: 5))
    }
    let scene = ResolverScene(on: loop, [provider]) {
      $0.routes[0].stale.mode = .onFailure
      $0.routes[0].stale.maxAge = 86_400
    }
    for _ in 0..<2 {
      for known in ["www.example", "none.example"] { _ = try scene.answer(known) }
      loop.advance(by: .seconds(600))
    }
    #expect(provider.count == 4)
    provider.refusalOfNew = UpstreamFailure.limited(.places)
    #expect(try scene.answer("www.example").addresses == ["192.0.2.1"])
    #expect(try scene.answer("www.example").extendedError == nil)
    #expect(provider.count == 5)
    // Neither a new name nor one of which only NXDOMAIN is known.
    #expect(try scene.answer("new.example").responseCode == .servFail)
    _ = try scene.answer("none.example")
    #expect(provider.count == 5)
  }

  @Test func `one query does not make names of a short-lived wildcard count as in use`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: 1), after: .zero)
    }
    let scene = ResolverScene(on: loop, [provider]) { $0.routes[0].stale = .tested(.onFailure) }
    for number in 0..<50 {
      // Twice at once is once.
      for _ in 0..<2 { _ = try scene.answer("x\(number).wild.example") }
    }
    loop.advance(by: .seconds(2))
    provider.refusalOfNew = UpstreamFailure.limited(.places)
    for number in 0..<50 { #expect(try scene.answer("x\(number).wild.example").extendedError == .staleAnswer) }
    #expect(provider.count == 50)
  }

  @Test func `a name that was answered from the cache in a later second is in use`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.1", ttl: 60))
    }
    let scene = ResolverScene(on: loop, [provider]) { $0.routes[0].stale = .tested(.onFailure) }
    for _ in 0..<2 {
      _ = try scene.answer("www.example")
      loop.advance(by: .seconds(30))
    }
    loop.advance(by: .seconds(100))
    provider.refusalOfNew = UpstreamFailure.limited(.places)
    #expect(try scene.answer("www.example").extendedError == nil)
    #expect(provider.count == 2)
  }

  @Test func `the next provider serves new names meanwhile`() throws {
    let (first, second) = (
      ScriptedUpstream("first", on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.1")) },
      ScriptedUpstream("second", on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.2")) }
    )
    let scene = ResolverScene(on: loop, [first, second])
    first.refusalOfNew = UpstreamFailure.limited(.places)
    #expect(try scene.answer("new.example").addresses == ["192.0.2.2"])
    #expect(first.count == 0)
  }

  @Test func `beyond subnets_per_name clients share one question and one answer`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      var answer = HTTPDNSAnswer.addresses(question.name, "192.0.2.1")
      if question.clientSubnet != nil { answer.scopePrefixLength = 24 }
      return .answer(answer)
    }
    provider.traits.clientSubnet = .fromClient
    provider.traits.subnetsPerName = 4
    let scene = ResolverScene(on: loop, [provider])
    func ask(_ number: Int, _ host: String) throws -> Message {
      let subnet = try #require(IPPrefix(text: "198.51.\(number).0/24"))
      return try scene.answer(ClientQuestion(name: host, subnet: subnet))
    }
    for number in 0..<100 { #expect(try ask(number, "www.example").addresses == ["192.0.2.1"]) }
    #expect(provider.count == 5)
    #expect(provider.asked.count { $0.question.clientSubnet == nil } == 1)
    #expect(scene.cache.usage.entries == 5)
    #expect(scene.counters.surplusSubnets == 96)
    #expect(scene.toldSubnets == 96)
    #expect(ReachedBound.subnetsPerName.word == "subnets_per_name")
    // Those that it has, and other names, go on.
    #expect(try ask(0, "www.example").edns?.clientSubnet?.scope == 24)
    #expect(try ask(99, "www.example").edns?.clientSubnet == nil)
    #expect(try ask(99, "other.example").edns?.clientSubnet?.scope == 24)
  }
}
