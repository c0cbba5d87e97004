// ProviderHostTests.swift -- servers given by name: one look-up for all, kept for its TTL, and never lost by a failure.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import LocalDNS
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ProviderHostTests {
  let loop = SimulatedLoop()

  private func lookUp(
    _ client: ScriptedPlainDNS, types: [RecordType] = [.a, .aaaa], servers: [String] = ["192.0.2.53:53"]
  ) -> HostLookUp {
    HostLookUp(name("dns.example"), types: types, client: client, loop: loop) {
      servers.map { PlainResolver(SocketAddress(text: $0)!) }
    }
  }

  private func resolver(_ script: @escaping (RecordType, Int) -> ScriptedPlainDNS.Step) -> ScriptedPlainDNS {
    ScriptedPlainDNS(on: loop, script)
  }

  private func find(_ lookUp: HostLookUp, within time: Duration = .seconds(2)) -> [String]? {
    loop.run { await lookUp.addresses(timeout: time)?.map(\.description) }
  }

  @Test func `concurrent questions share one look-up of both families`() {
    let client = resolver { type, _ in
      (type == .a ? ["192.0.2.1", "192.0.2.2"] : ["2001:db8::1"], 300, .milliseconds(type == .a ? 80 : 30))
    }
    let lookUp = lookUp(client)
    let begin = loop.now
    let found = loop.run { [loop] in
      let tasks = (0..<20).map { _ in
        loop.startTask { await lookUp.addresses(timeout: .seconds(2)) }
      }
      var found: [[IPAddress]?] = []
      for task in tasks { found.append(await task.value) }
      return found
    }
    #expect(Set(found).count == 1)
    #expect(found[0]?.map(\.description) == ["192.0.2.1", "192.0.2.2", "2001:db8::1"])
    #expect(client.asked.map(\.type) == [.a, .aaaa])
    #expect(client.asked.allSatisfy { $0.at == begin && $0.servers.map(\.description) == ["192.0.2.53:53"] })
    #expect(loop.now - begin == .milliseconds(80))
  }

  @Test func `a slow look-up of one family does not delay the other`() {
    let client = resolver { type, _ in type == .a ? (["192.0.2.1"], 300, .milliseconds(20)) : (nil, 0, .seconds(9)) }
    let lookUp = lookUp(client)
    let begin = loop.now
    #expect(find(lookUp) == ["192.0.2.1"])
    #expect(loop.now - begin == .milliseconds(70))
    loop.advance(by: .seconds(5))
    #expect(find(lookUp) == ["192.0.2.1"])
    #expect(client.asked.count == 2)
  }

  @Test func `addresses of a server are valid for their TTL, from a minute to an hour`() {
    for (ttl, lifetime) in [(300, 300), (5, 60), (0x7FFF_FFFF, 3600)] as [(UInt32, Int)] {
      let client = resolver { _, number in (["192.0.2.\(number + 1)"], ttl, .milliseconds(20)) }
      let lookUp = lookUp(client, types: [.a])
      #expect(find(lookUp) == ["192.0.2.1"])
      loop.advance(by: .seconds(lifetime) - .milliseconds(1))
      #expect(find(lookUp) == ["192.0.2.1"])
      #expect(client.asked.count == 1)
      loop.advance(by: .milliseconds(1))
      let begin = loop.now
      #expect(find(lookUp) == ["192.0.2.1"])
      #expect(loop.now == begin)
      loop.advance(by: .milliseconds(20))
      #expect(find(lookUp) == ["192.0.2.2"])
      #expect(client.asked.count == 2)
    }
  }

  @Test(arguments: [nil, []] as [[String]?])
  func `old addresses stay if a look-up fails, which is retried after a second`(then: [String]?) {
    let client = resolver { _, number in number == 0 ? (["192.0.2.1"], 60, .zero) : (then, 60, .milliseconds(10)) }
    let lookUp = lookUp(client, types: [.a])
    #expect(find(lookUp) == ["192.0.2.1"])
    loop.advance(by: .seconds(60))
    for _ in 0..<10 {
      #expect(find(lookUp) == ["192.0.2.1"])
      loop.advance(by: .milliseconds(500))
    }
    #expect((5...6).contains(client.asked.count))
  }

  @Test func `a family with NODATA is forgotten, one whose look-up failed is not`() {
    let client = resolver { type, number in
      switch (type, number) {
      case (.a, _): (["192.0.2.1"], 60, .zero)
      case (_, 0): (["2001:db8::1"], 60, .zero)
      case (_, 1): (nil, 0, .zero)
      default: ([], 60, .zero)
      }
    }
    let lookUp = lookUp(client)
    #expect(find(lookUp) == ["192.0.2.1", "2001:db8::1"])
    for expected in [["192.0.2.1", "2001:db8::1"], ["192.0.2.1"]] {
      loop.advance(by: .seconds(60))
      _ = find(lookUp)
      loop.advance(by: .seconds(1))
      #expect(find(lookUp) == expected)
    }
  }

  @Test func `an unresolved server fails within the question's time, and is looked up once a second`() {
    let client = resolver { _, _ in (nil, 0, .seconds(9)) }
    let lookUp = lookUp(client, types: [.a])
    let begin = loop.now
    let nothing = loop.run { [loop] in
      let first = loop.startTask { await lookUp.addresses(timeout: .seconds(2)) }
      let hurried = loop.startTask {
        let found = await lookUp.addresses(timeout: .milliseconds(200))
        return (found, loop.now)
      }
      let early = await hurried.value
      let late = await first.value
      return (early.0 == nil, early.1, late == nil)
    }
    #expect(nothing.0)
    #expect(nothing.1 - begin == .milliseconds(200))
    #expect(nothing.2)
    #expect(loop.now - begin == .seconds(2))
    #expect(find(lookUp) == nil)
    #expect(client.asked.count == 1)
    loop.advance(by: .seconds(1))
    #expect(find(lookUp) == nil)
    #expect(client.asked.count == 2)
    loop.advance(by: .seconds(1))
    client.script = { _, _ in (["192.0.2.1"], 300, .milliseconds(20)) }
    #expect(find(lookUp) == ["192.0.2.1"])
  }

  @Test func `a server connects when its address is known, and again only when the addresses change`() {
    var connected: [[String]] = []
    let answers = [["192.0.2.1", "192.0.2.2"], ["192.0.2.2", "192.0.2.1"], ["192.0.2.3"]]
    let client = resolver { _, number in (answers[min(number, 2)], 60, .zero) }
    nonisolated(unsafe) let server = ProviderServer("dns.example:443", lookUp: lookUp(client, types: [.a])) {
      [loop] addresses in
      connected.append(addresses.map(\.description))
      return ScriptedTransport(on: loop) { _ in (.address("192.0.2.7"), .zero) }
    }
    for _ in 0..<6 {
      #expect(loop.run { await server.transport(timeout: .seconds(2)) != nil })
      loop.advance(by: .seconds(30))
    }
    _ = loop.run { await server.transport(timeout: .seconds(2)) != nil }
    #expect(connected == [["192.0.2.1", "192.0.2.2"], ["192.0.2.3"]])
  }

  @Test func `an address that was silent goes behind the others, also when the name gets other addresses`() {
    var connected: [[String]] = []
    let answers = [["192.0.2.1", "192.0.2.2"], ["192.0.2.1", "192.0.2.3"], ["192.0.2.1"]]
    let client = resolver { _, number in (answers[min(number, 2)], 60, .zero) }
    nonisolated(unsafe) let server = ProviderServer("dns.example:443", lookUp: lookUp(client, types: [.a])) {
      [loop] addresses in
      connected.append(addresses.map(\.description))
      let transport = ScriptedTransport(on: loop) { _ in (.address("192.0.2.7"), .zero) }
      transport.silentAddresses = ["192.0.2.1"]
      return transport
    }
    for _ in 0..<6 {
      _ = loop.run { await server.transport(timeout: .seconds(2)) != nil }
      loop.advance(by: .seconds(30))
    }
    #expect(connected == [["192.0.2.1", "192.0.2.2"], ["192.0.2.3", "192.0.2.1"], ["192.0.2.1"]])
  }

  @Test func `a failed connection causes a look-up, at most every five seconds`() {
    let client = resolver { _, number in (["192.0.2.\(number + 1)"], 3600, .zero) }
    let transport = ScriptedTransport(on: loop) { _ in (.refused, .zero) }
    transport.handshakes = { _ in (HTTPFailure(.refused, "refused"), .zero) }
    let provider = HTTPDNSProvider(
      Configuration.Provider.tested(name: "first"), dialect: JSONDialect(flavour: .generic, path: "/resolve"),
      servers: [ProviderServer("dns.example:443", lookUp: lookUp(client, types: [.a])) { _ in transport }], loop: loop)
    let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
    for _ in 0..<3 {
      loop.run { [loop] in
        _ = await provider.ask(
          question, for: OwnQuestion(question.name, now: loop.now), deadline: loop.now + .seconds(1),
          isLastResort: false)
      }
    }
    #expect(provider.report.state.word == "down")
    // Handshakes look the name up again.
    loop.advance(by: .seconds(60))
    let times = client.asked.map(\.at)
    #expect(times.count > 2)
    #expect(zip(times.dropFirst(1), times.dropFirst(2)).allSatisfy { $1 - $0 >= .seconds(5) })
  }

  @Test func `a provider whose server's name is found too late sends nothing, and the deadline holds`() {
    let client = resolver { _, _ in (["192.0.2.1"], 60, .milliseconds(950)) }
    let transport = ScriptedTransport(on: loop) { _ in (.address("192.0.2.7"), .zero) }
    let provider = HTTPDNSProvider(
      Configuration.Provider.tested(name: "first"), dialect: JSONDialect(flavour: .generic, path: "/resolve"),
      servers: [ProviderServer("dns.example:443", lookUp: lookUp(client, types: [.a])) { _ in transport }], loop: loop)
    let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)
    let begin = loop.now
    let isFailure = loop.run { [loop] in
      let result = await provider.ask(
        question, for: OwnQuestion(question.name, now: loop.now), deadline: loop.now + .seconds(1), isLastResort: true)
      return if case .failure = result { true } else { false }
    }
    #expect(isFailure)
    #expect(loop.now - begin <= .seconds(1))
    #expect(transport.sent.isEmpty)
    let isAnswered = loop.run { [loop] in
      let result = await provider.ask(
        question, for: OwnQuestion(question.name, now: loop.now), deadline: loop.now + .seconds(1), isLastResort: true)
      return if case .success = result { true } else { false }
    }
    #expect(isAnswered)
  }
}
