// SilentServerTests.swift -- a resolver that keeps silent costs the first questions 300 ms, and those after it nothing.

import DNSWire
import EventLoop
import TestSupport
import Testing

@testable import LocalDNS

/// Servers that do what the test says after a time of their own.
private final class ScriptedWire: Wire, @unchecked Sendable {
  struct Manner {
    var latency = Duration.milliseconds(10)
    var code = ResponseCode.noError
    var hasRecords = true
  }

  private let loop: SimulatedLoop
  /// Nil for silence.
  var manners: [SocketAddress: Manner] = [:]
  private(set) var asked: [(server: SocketAddress, at: BootInstant)] = []
  let ignoredReplies: UInt64 = 0
  var clock: any Loop { loop }

  init(on loop: SimulatedLoop) { self.loop = loop }

  func forget() { asked = [] }

  func exchange(
    _ query: PreparedQuery, with server: SocketAddress, over transport: WireTransport, until deadline: BootInstant
  ) async -> ExchangeOutcome {
    asked.append((server, loop.now))
    let latency = manners[server]?.latency ?? .seconds(3600)
    await loop.sleep(for: min(latency, deadline - loop.now))
    guard !Task.isCancelled else { return .failure(.cancelled) }
    guard let manner = manners[server], loop.now < deadline, var message = try? Message.parse(query.octets)
    else { return .failure(.timedOut) }
    message.header.qr = true
    message.header.rcode = UInt8(manner.code.rawValue)
    if manner.hasRecords {
      message.answers = [
        ResourceRecord(
          owner: message.questions[0].question.name, type: .a, ttl: 300, rdata: server.octets)
      ]
    }
    return .response(message)
  }
}

@Suite struct `Silent resolvers` {
  private let loop = SimulatedLoop()
  private let wire: ScriptedWire
  private let client: LocalDNSClient
  private let servers = (1...3).map { SocketAddress(text: "192.0.2.\($0):53")! }

  init() {
    wire = ScriptedWire(on: loop)
    client = LocalDNSClient(over: wire)
    for server in servers { wire.manners[server] = .init() }
  }

  /// Whose answer came, and after which time.
  private func ask(_ servers: [SocketAddress], timeout: Duration = .milliseconds(1500)) -> (UInt8?, Duration) {
    wire.forget()
    let begin = loop.now
    let result = loop.run { [client] in
      await client.ask(
        Question(name: DomainName(text: "www.example.com")!, type: .a), dnssecOK: false, checkingDisabled: false,
        servers: servers, timeout: timeout)
    }
    return ((try? result.get())?.answers.first?.rdata.last, loop.now - begin)
  }

  @Test func `the second one is asked beside the first after 300 ms, and first of all from then on`() {
    wire.manners[servers[0]] = nil
    #expect(ask(servers) == (2, .milliseconds(310)))
    #expect(ask(servers) == (2, .milliseconds(10)))
    #expect(wire.asked.map(\.server) == [servers[1]])
    #expect(client.counters.timeouts == 1)
    #expect(client.counters.demotions == 1)
  }

  @Test func `the time that it is behind doubles from 10 s to 5 min, and an answer ends it`() {
    wire.manners[servers[0]] = nil
    var pauses: [Int] = []
    for _ in 0..<7 {
      _ = ask(servers)
      var seconds = 0
      while client.standing.isSilent(servers[0], at: loop.now) {
        loop.advance(by: .seconds(1))
        seconds += 1
      }
      pauses.append(seconds)
    }
    #expect(pauses == [10, 20, 40, 80, 160, 300, 300])
    wire.manners[servers[0]] = .init()
    #expect(ask(servers) == (1, .milliseconds(10)))
    wire.manners[servers[0]] = nil
    loop.advance(by: .seconds(5))
    _ = ask(servers)
    loop.advance(by: .seconds(11))
    #expect(!client.standing.isSilent(servers[0], at: loop.now))
  }

  @Test func `it is asked all the same where the others fail or are silent too`() {
    wire.manners[servers[0]] = nil
    _ = ask(servers)
    wire.manners[servers[0]] = .init()
    for server in servers[1...] { wire.manners[server] = nil }
    #expect(ask(servers).0 == 1)
    for server in servers { wire.manners[server] = nil }
    #expect(ask(servers) == (nil, .milliseconds(1500)))
    for server in servers { wire.manners[server] = .init(code: .servFail, hasRecords: false) }
    #expect(ask(servers) == (nil, .milliseconds(30)))
  }

  @Test func `a server that is slow with one name and answers others is not silent`() {
    #expect(ask([servers[0]]).0 == 1)
    wire.manners[servers[0]]?.latency = .milliseconds(600)
    #expect(ask(servers).0 == 2)
    wire.manners[servers[0]]?.latency = .milliseconds(10)
    #expect(ask(servers) == (1, .milliseconds(10)))
  }

  @Test func `a denial by the second one waits for the first, for as long as that had alone before`() {
    wire.manners[servers[0]]?.latency = .milliseconds(500)
    wire.manners[servers[1]] = .init(code: .nxDomain, hasRecords: false)
    let two = Array(servers[..<2])
    #expect(ask(two).0 == 1)
    wire.manners[servers[0]] = nil
    loop.advance(by: .seconds(2))
    #expect(ask(two) == (nil, .milliseconds(750)))
    #expect(ask(two) == (nil, .milliseconds(10)))
  }

  @Test func `another network begins without silent servers`() {
    wire.manners[servers[0]] = nil
    _ = ask(servers)
    client.networkHasChanged()
    _ = ask(servers)
    #expect(wire.asked.first?.server == servers[0])
  }
}
