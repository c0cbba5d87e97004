// ResolverProviderTests.swift -- the resolver with real providers whose servers are down: by when every client has an answer.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// How a server, or LocalDNS, is down.
enum Outage: CaseIterable, Sendable {
  case silent, refused, slow

  /// What a server says, and after which time.
  var step: (result: HTTPResult, latency: Duration) {
    switch self {
    case .silent: (.refused, .seconds(3600))
    case .refused: (.refused, .milliseconds(1))
    case .slow: (.status(500), .milliseconds(1900))
    }
  }

  /// What LocalDNS says.
  var localStep: ScriptedStep {
    switch self {
    case .silent: .silence
    case .refused: .failure(.networkError, after: .milliseconds(1))
    case .slow: .failure(.noReachableAuthority, after: .milliseconds(1400))
    }
  }
}

@Suite struct ResolverProviderTests {
  private let loop: SimulatedLoop
  /// What resolvers of clients wait for, less the way back.
  private let longest = Duration.milliseconds(4500)

  init() { loop = SimulatedLoop() }

  /// The same on another loop.
  private init(on loop: SimulatedLoop) { self.loop = loop }

  private func provider(
    _ label: String, _ servers: [ScriptedTransport], schedule: ServerSchedule? = nil
  ) -> HTTPDNSProvider {
    HTTPDNSProvider(
      Configuration.Provider.tested(name: label), dialect: JSONDialect(flavour: .generic, path: "/resolve"),
      servers: servers.enumerated().map { number, transport in
        ProviderServer("\(label)\(number)", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in transport }
      }, loop: loop, schedule: schedule)
  }

  private func down(_ label: String, _ outage: Outage, servers: Int = 3) -> HTTPDNSProvider {
    provider(
      label,
      (0..<servers).map { _ in
        let transport = ScriptedTransport(on: loop) { _ in outage.step }
        if outage == .refused { transport.handshakes = { _ in (HTTPFailure(.refused, "refused"), .milliseconds(1)) } }
        return transport
      })
  }

  @Test(arguments: Outage.allCases, Outage.allCases)
  func `every client is answered in time during any outage`(_ first: Outage, _ second: Outage) throws {
    for outage in [nil, .silent, .refused, .slow] as [Outage?] {
      let loop = SimulatedLoop()
      let tests = ResolverProviderTests(on: loop)
      let local = outage.map { outage in ScriptedLocalDNS(on: loop) { _, _ in outage.localStep } }
      let scene = ResolverScene(on: loop, [tests.down("first", first), tests.down("second", second)], local: local)
      var numbers: [Int] = []
      for number in 0..<60 {
        numbers.append(scene.ask("n\(number).example.com"))
        loop.advance(by: .milliseconds(700))
      }
      loop.advance(by: .seconds(10))
      for number in numbers {
        let reply = try scene.reply(number)
        #expect(reply.message.responseCode == .servFail)
        #expect(reply.message.extendedError != nil)
        #expect(reply.after <= longest)
      }
      #expect(scene.inFlight == 0)
    }
  }

  @Test(arguments: Outage.allCases)
  func `from the third second on providers that are down cost their short patience, or nothing`(_ outage: Outage) throws
  {
    for hasLocal in [false, true] {
      let loop = SimulatedLoop()
      let tests = ResolverProviderTests(on: loop)
      let local = ScriptedLocalDNS(on: loop) { question, _ in
        .answer(.addresses(question.name, "198.51.100.1"), after: .milliseconds(5))
      }
      let providers = ["first", "second"].map { tests.down($0, outage) }
      let scene = ResolverScene(on: loop, providers, local: hasLocal ? local : nil)
      for number in 0..<20 {
        scene.ask("n\(number).d\(number).example")
        loop.advance(by: .milliseconds(100))
      }
      loop.advance(by: .seconds(1))
      // Twice four times the usual time, which is 50 ms as long as nothing is known.
      let longest = outage == .refused ? .zero : Duration.milliseconds(400)
      for number in 0..<50 {
        let reply = scene.ask("later\(number).d\(number).example")
        loop.advance(by: .milliseconds(100))
        guard hasLocal else { continue }
        loop.advance(by: .milliseconds(400))
        #expect(try scene.reply(reply).after <= longest + .milliseconds(5))
        #expect(try scene.reply(reply).message.responseCode == .noError)
      }
    }
  }

  @Test(arguments: Outage.allCases)
  func `a second provider answers in time however the first one is down`(_ outage: Outage) throws {
    let well = ScriptedTransport(on: loop) { _ in (.address("192.0.2.7"), .milliseconds(300)) }
    let scene = ResolverScene(on: loop, [down("first", outage), provider("second", [well])])
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(10))
    let reply = try scene.reply(number)
    #expect(reply.message.addresses == ["192.0.2.7"])
    #expect(reply.after <= .milliseconds(2500))
  }

  @Test func `a provider whose list of servers does not come leaves the next one the time to answer`() throws {
    let silent = (0..<10).map { _ in ScriptedTransport(on: loop) { _ in Outage.silent.step } }
    let schedule = ServerSchedule(
      EMASSchedule(accountID: "100000"), of: .tested(name: "first"), identity: "100000 http cn",
      bootServers: silent.map { transport in
        ProviderServer("boot", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in transport }
      }, file: nil, timeout: .seconds(2), loop: loop
    ) { _, _ in }
    let well = ScriptedTransport(on: loop) { _ in (.address("192.0.2.7"), .milliseconds(300)) }
    let scene = ResolverScene(on: loop, [provider("first", silent, schedule: schedule), provider("second", [well])])
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(30))
    let reply = try scene.reply(number)
    #expect(reply.message.addresses == ["192.0.2.7"])
    #expect(reply.after <= .milliseconds(2500))
  }

  @Test func `a table that does not come leaves the next provider the time to answer`() throws {
    let silent = (0..<3).map { _ in ScriptedTransport(on: loop) { _ in Outage.silent.step } }
    let servers = silent.map { transport in
      ProviderServer("table", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in transport }
    }
    let table = TableProvider(
      .table, .servers(servers, target: "/", host: nil), interval: .seconds(60), ttl: 60, loop: loop,
      watch: { _, _ in nil }
    ) { _, _ in }
    let well = ScriptedTransport(on: loop) { _ in (.address("192.0.2.7"), .milliseconds(300)) }
    let scene = ResolverScene(on: loop, [table, provider("second", [well])])
    let number = scene.ask("www.example.com")
    loop.advance(by: .seconds(30))
    let reply = try scene.reply(number)
    #expect(reply.message.addresses == ["192.0.2.7"])
    #expect(reply.after <= .milliseconds(2500))
  }
}
