// DiagnosisTests.swift -- opinions side by side, and when one of them looks like a hijack.

import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct DiagnosisTests {
  private func opinion(_ who: Opinion.Who, _ outcome: Opinion.Answer, _ type: RecordType = .a) -> Opinion {
    Opinion(who: who, type: type, took: .milliseconds(1), outcome: outcome)
  }

  private func addresses(_ texts: String...) -> Opinion.Answer {
    .addresses(texts.map { IPAddress(text: $0)! }, ttl: 60)
  }

  private func verdict(_ local: Opinion.Answer, providers: [Opinion.Answer]) -> Agreement {
    let opinion = opinion(.localDNS("192.0.2.53:53"), local)
    return Agreement(of: opinion, among: providers.map { self.opinion(.provider("a"), $0) } + [opinion])
  }

  @Test func `a resolver that shares an address with a provider agrees`() {
    #expect(verdict(addresses("192.0.2.1"), providers: [addresses("192.0.2.2", "192.0.2.1")]) == .agrees)
    #expect(verdict(addresses("192.0.2.1"), providers: [.noName, addresses("192.0.2.1")]) == .agrees)
    #expect(verdict(.noData, providers: [.noData]) == .agrees)
    #expect(verdict(.noName, providers: [.noName]) == .agrees)
  }

  @Test func `other addresses differ, private and invented ones are worse`() {
    let real = addresses("192.0.2.1")
    #expect(verdict(addresses("198.51.100.1"), providers: [real]) == .differs)
    for inside in ["10.0.0.1", "127.0.0.1", "0.0.0.0", "192.168.1.1", "169.254.1.1"] {
      #expect(verdict(addresses(inside), providers: [real]) == .privateAddress)
    }
    #expect(verdict(addresses("10.0.0.1"), providers: [addresses("10.0.0.9")]) == .differs)
    #expect(verdict(addresses("198.51.100.1"), providers: [.noName]) == .invented)
    #expect(verdict(addresses("198.51.100.1"), providers: [.noData]) == .differs)
    #expect(verdict(.noName, providers: [real]) == .hidden)
    #expect(verdict(.noData, providers: [real, .failure("x")]) == .hidden)
  }

  @Test func `without another answer nothing can be compared`() {
    #expect(verdict(addresses("198.51.100.1"), providers: []) == .unknown)
    #expect(verdict(addresses("198.51.100.1"), providers: [.failure("silent")]) == .unknown)
    #expect(verdict(.failure("silent"), providers: [addresses("192.0.2.1")]) == .unknown)
    // A name outside of an account's list: that account's provider has no word about it.
    #expect(verdict(addresses("198.51.100.1"), providers: [.notListed("")]) == .unknown)
    #expect(verdict(addresses("198.51.100.1"), providers: [.notListed(""), .noName]) == .invented)
    #expect(verdict(.noName, providers: [.notListed(""), addresses("192.0.2.1")]) == .hidden)
  }

  @Test func `families are compared apart`() {
    let local = opinion(.localDNS("192.0.2.53:53"), addresses("2001:db8::1"), .aaaa)
    let all = [opinion(.provider("a"), addresses("192.0.2.1")), opinion(.provider("a"), .noData, .aaaa), local]
    #expect(Agreement(of: local, among: all) == .differs)
    #expect(Agreement(of: all[0], among: all) == .reference)
  }

  @Test func `all upstreams are asked at once, and a silent one does not delay the others`() async {
    let loop = SimulatedLoop()
    let quick = ScriptedUpstream("quick", on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.1")) }
    let silent = ScriptedUpstream("silent", on: loop) { _, _ in .silence }
    let scene = ResolverScene(on: loop, [quick, silent])
    let resolver = scene.resolver
    let began = loop.now
    let opinions = loop.run { await resolver.console { await $0.opinions(on: name("www.example.com"), [.a]) } }
    #expect(loop.now - began <= ResolverSettings.answerBy)
    #expect(opinions.map(\.who).prefix(2) == [.provider("quick"), .provider("silent")])
    #expect(opinions[0].outcome.addresses.map(\.description) == ["192.0.2.1"])
    if case .failure = opinions[1].outcome {} else { Issue.record("\(opinions[1].outcome)") }
  }

  @Test func `one provider is asked past the rules, and another one's name is not known`() {
    let loop = SimulatedLoop()
    let first = ScriptedUpstream("first", on: loop) { _, _ in .failure() }
    let second = ScriptedUpstream("second", on: loop) { question, _ in .answer(.addresses(question.name, "192.0.2.2")) }
    let resolver = ResolverScene(on: loop, [first, second]).resolver
    let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
    let answer = loop.run { await resolver.console { await $0.ask(question, of: "second") } }
    #expect(answer?.source == .provider("second", server: "192.0.2.1"))
    #expect(first.asked.isEmpty)
    let failed = loop.run { await resolver.console { await $0.ask(question, of: "first") } }
    #expect(failed?.failure != nil)
    let unknown = loop.run { await resolver.console { await $0.ask(question, of: "third") } }
    #expect(unknown == nil)
  }
}
