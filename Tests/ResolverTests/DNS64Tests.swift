// DNS64Tests.swift -- names with IPv4 addresses alone, as clients of an IPv6-only network get them.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import LocalDNS
import LocalDNSTestSupport
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `On a network with NAT64` {
  private let loop = SimulatedLoop()
  private let provider: ScriptedUpstream
  private let local: ScriptedLocalDNS
  private let nat64: NAT64

  init() {
    provider = ScriptedUpstream(on: loop) { question, _ in Self.answer(to: question) }
    local = ScriptedLocalDNS(on: loop) { _, _ in .answer(.negative(.noError, zone: name("example"))) }
    nat64 = NAT64(LocalDNSClient(over: Laboratory(on: loop)), on: loop) { [] }
    nat64.follow(.prefix(NAT64Prefix(IPPrefix(text: "64:ff9b::/96")!)!))
  }

  private static func answer(to question: HTTPDNSQuestion) -> ScriptedStep {
    let isIPv6 = question.type == .aaaa
    switch (question.name.text, question.type) {
    case ("dual.example.", .aaaa): return .answer(.addresses(question.name, "2001:db8::1"))
    case ("mapped.example.", .aaaa): return .answer(.addresses(question.name, "::ffff:192.0.2.1"))
    case ("nowhere.example.", _): return .answer(.negative(.nxDomain, zone: name("example")))
    case ("inside.example.", .a): return .answer(.addresses(question.name, "10.0.0.1", "127.0.0.1", "169.254.0.1"))
    case ("alias.example.", .a):
      let target = name("dual.example")
      let records = [
        ResourceRecord(owner: question.name, type: .cname, ttl: 100, rdata: target.octets),
        ResourceRecord(owner: target, type: .a, ttl: 200, rdata: [192, 0, 2, 1]),
      ]
      return .answer(HTTPDNSAnswer(responseCode: .noError, answers: records))
    case ("1.2.0.192.in-addr.arpa.", .ptr):
      let record = ResourceRecord(owner: question.name, type: .ptr, ttl: 60, rdata: name("host.example").octets)
      return .answer(HTTPDNSAnswer(responseCode: .noError, answers: [record]))
    case (_, .a): return .answer(.addresses(question.name, "192.0.2.1"))
    default: return .answer(.negative(.noError, zone: name("example"), ttl: isIPv6 ? 40 : 10))
    }
  }

  private func scene(_ rules: [RouteRule] = []) -> ResolverScene {
    let scene = ResolverScene(on: loop, [provider], local: local, rules: rules)
    scene.network.change(to: 1)
    nonisolated(unsafe) let nat64 = nat64
    scene.resolver.assumeIsolated { $0.nat64 = nat64 }
    return scene
  }

  private func answer(_ scene: ResolverScene, _ name: String, checkingDisabled: Bool = false) throws -> Message {
    try scene.answer(ClientQuestion(name: name, type: .aaaa, checkingDisabled: checkingDisabled))
  }

  @Test func `where a rule answers for the A records itself, none are made of others`() throws {
    let rule = RouteRule(names: [NamePattern(text: "closed.example")!], types: [.a], action: .refused)
    #expect(try answer(scene([rule]), "closed.example").answers.isEmpty)
    #expect(provider.asked.map(\.question.type) == [.aaaa])
  }

  @Test func `a client that a rule of its own lets ask gets AAAA, though the name is refused to others`() throws {
    let name = NamePattern(text: "www.example.com")!
    let rules = [
      RouteRule(
        names: [name], clients: [IPPrefix(text: "10.0.0.0/8")!], action: .route(Route.Number.search)),
      RouteRule(names: [name], action: .refused),
    ]
    #expect(try !answer(scene(rules), "www.example.com").answers.isEmpty)
    #expect(provider.asked.map(\.question.type) == [.aaaa, .a])
  }

  @Test(arguments: ["www.example.com", "mapped.example"])
  func `a name without AAAA has one for each of its A records`(text: String) throws {
    let scene = scene()
    let answer = try answer(scene, text)
    #expect(answer.addresses == ["64:ff9b::c000:201"])
    #expect(answer.answers.allSatisfy { $0.type == .aaaa })
    #expect(provider.asked.map(\.question.type) == [.aaaa, .a])
    // Both come from the cache now.
    #expect(try self.answer(scene, text).addresses == ["64:ff9b::c000:201"])
    #expect(try scene.answer(text).addresses == ["192.0.2.1"])
    #expect(provider.asked.count == 2)
  }

  @Test func `the TTL is the lower one of A and SOA`() throws {
    #expect(try answer(scene(), "www.example.com").answers.map(\.ttl) == [40])
  }

  @Test func `an alias stays in front`() throws {
    let answer = try answer(scene(), "alias.example")
    #expect(answer.answers.map(\.type) == [.cname, .aaaa])
    #expect(answer.addresses == ["64:ff9b::c000:201"])
  }

  @Test func `a name with AAAA, one that does not exist, and private addresses are left as they are`() throws {
    let scene = scene()
    #expect(try answer(scene, "dual.example").addresses == ["2001:db8::1"])
    #expect(try answer(scene, "nowhere.example").responseCode == .nxDomain)
    let inside = try answer(scene, "inside.example")
    #expect(inside.responseCode == .noError && inside.answers.isEmpty)
    #expect(provider.asked.count { $0.question.type == .a } == 1)
  }

  @Test func `a client that validates gets no made record`() throws {
    #expect(try answer(scene(), "www.example.com", checkingDisabled: true).answers.isEmpty)
  }

  @Test func `LocalDNS's answers are as the network wants them`() throws {
    let scene = scene()
    provider.script = { _, _ in .failure() }
    #expect(try answer(scene, "www.example.com").answers.isEmpty)
    #expect(local.asked.map(\.question.type) == [.aaaa])
  }

  @Test func `such an answer is nothing on another network`() throws {
    let scene = scene()
    _ = try answer(scene, "www.example.com")
    nat64.follow(.off)
    scene.network.change(to: 2)
    #expect(try answer(scene, "www.example.com").answers.isEmpty)
    scene.network.change(to: 1)
    let count = provider.asked.count
    _ = try answer(scene, "www.example.com")
    #expect(provider.asked.count == count)
  }

  @Test func `the denial that comes along with A is translated as well`() throws {
    let scene = scene()
    provider.along = { question in
      guard question.type == .a else { return [] }
      let other = HTTPDNSQuestion(name: question.name, type: .aaaa)
      return [(other, .negative(.noError, zone: name("example")))]
    }
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    loop.settle()
    #expect(try answer(scene, "www.example.com").addresses == ["64:ff9b::c000:201"])
    #expect(provider.asked.count == 1)
  }

  @Test func `the reverse name of such an address leads to that of the IPv4 address`() throws {
    let scene = scene()
    let name = IPAddress(text: "64:ff9b::c000:201")!.reverseName.text
    let answer = try scene.answer(ClientQuestion(name: name, type: .ptr))
    #expect(answer.answers.map(\.type) == [.cname, .ptr])
    #expect(answer.answers.last?.owner.text == "1.2.0.192.in-addr.arpa.")
    let unknown = IPAddress(text: "64:ff9b::c000:202")!.reverseName.text
    #expect(try scene.answer(ClientQuestion(name: unknown, type: .ptr)).answers.map(\.type) == [.cname])
  }
}
