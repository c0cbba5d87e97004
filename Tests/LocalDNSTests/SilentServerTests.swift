// SilentServerTests.swift -- a resolver that keeps silent costs the first questions 300 ms, and those after it nothing.

import DNSWire
import EventLoop
import TestSupport
import Testing

@testable import LocalDNS

/// Servers that do what the test says after a time of their own.
private final class ScriptedExchanger: QueryExchanger, @unchecked Sendable {
  struct Manner {
    var latency = Duration.milliseconds(10)
    var code = ResponseCode.noError
    var hasRecords = true
    /// Records of its authority section.
    var authorities: [ResourceRecord] = []
    var isAuthoritative = false
  }

  private let loop: SimulatedLoop
  /// Nil for silence.
  var manners: [SocketAddress: Manner] = [:]
  private(set) var asked: [(server: SocketAddress, at: BootInstant)] = []
  let ignoredReplies: UInt64 = 0
  var clock: any Loop { loop }

  init(on loop: SimulatedLoop) { self.loop = loop }

  /// Exchanges that have neither ended nor been cancelled, and how many there were at once.
  private var open: Set<Int> = []
  private(set) var mostOpen = 0

  func forget() { asked = [] }

  /// A socket is closed as soon as its exchange is cancelled.
  func exchange(
    _ query: PreparedQuery, with server: SocketAddress, over transport: ExchangeTransport, until deadline: BootInstant
  ) async -> ExchangeOutcome {
    let number = (open.max() ?? 0) + 1
    asked.append((server, loop.now))
    open.insert(number)
    mostOpen = max(mostOpen, open.count)
    defer { open.remove(number) }
    let latency = manners[server]?.latency ?? .seconds(3600)
    await withTaskCancellationHandler {
      await loop.sleep(for: min(latency, deadline - loop.now))
    } onCancel: {
      open.remove(number)
    }
    guard !Task.isCancelled else { return .failure(.cancelled) }
    guard let manner = manners[server], loop.now < deadline, var message = try? Message.parse(query.octets)
    else { return .failure(.timedOut) }
    message.header.qr = true
    message.header.rcode = UInt8(manner.code.rawValue)
    message.header.aa = manner.isAuthoritative
    message.authorities = manner.authorities
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
  private let exchanger: ScriptedExchanger
  private let client: LocalDNSClient
  private let servers = (1...3).map { SocketAddress(text: "192.0.2.\($0):53")! }

  init() {
    exchanger = ScriptedExchanger(on: loop)
    client = LocalDNSClient(over: exchanger)
    for server in servers { exchanger.manners[server] = .init() }
  }

  /// Whose answer came, and after which time.
  private func ask(_ servers: [SocketAddress], timeout: Duration = .milliseconds(1500)) -> (UInt8?, Duration) {
    exchanger.forget()
    let begin = loop.now
    let result = loop.run { [client] in
      await client.ask(
        Question(name: DomainName(text: "www.example.com")!, type: .a), dnssecOK: false, checkingDisabled: false,
        servers: servers, timeout: timeout)
    }
    let answer = try? result.get()
    let octet = answer?.message.answers.first?.rdata.last
    if let octet { #expect(answer?.server == servers.first { octet == $0.octets.last }) }
    return (octet, loop.now - begin)
  }

  @Test func `the second one is asked beside the first after 300 ms, and first of all from then on`() {
    exchanger.manners[servers[0]] = nil
    #expect(ask(servers) == (2, .milliseconds(310)))
    #expect(ask(servers) == (2, .milliseconds(10)))
    #expect(exchanger.asked.map(\.server) == [servers[1]])
    #expect(client.counters.timeouts == 1)
    #expect(client.counters.demotions == 1)
  }

  @Test func `the time that it is behind doubles from 10 s to 5 min, and an answer ends it`() {
    exchanger.manners[servers[0]] = nil
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
    exchanger.manners[servers[0]] = .init()
    #expect(ask(servers) == (1, .milliseconds(10)))
    exchanger.manners[servers[0]] = nil
    loop.advance(by: .seconds(5))
    _ = ask(servers)
    loop.advance(by: .seconds(11))
    #expect(!client.standing.isSilent(servers[0], at: loop.now))
  }

  @Test func `a silent resolver is asked if the others fail or are silent too`() {
    exchanger.manners[servers[0]] = nil
    _ = ask(servers)
    exchanger.manners[servers[0]] = .init()
    for server in servers[1...] { exchanger.manners[server] = nil }
    #expect(ask(servers).0 == 1)
    for server in servers { exchanger.manners[server] = nil }
    #expect(ask(servers) == (nil, .milliseconds(1500)))
    for server in servers { exchanger.manners[server] = .init(code: .servFail, hasRecords: false) }
    #expect(ask(servers) == (nil, .milliseconds(30)))
  }

  @Test(arguments: [1, 4, 9]) func `the time is bounded for any number of silent resolvers`(count: Int) {
    let silent = (1...count).map { SocketAddress(text: "198.51.100.\($0):53")! }
    #expect(ask(silent, timeout: .milliseconds(120)) == (nil, .milliseconds(120)))
  }

  @Test func `a resolver that is slow for one name only is not silent`() {
    #expect(ask([servers[0]]).0 == 1)
    exchanger.manners[servers[0]]?.latency = .milliseconds(600)
    #expect(ask(servers).0 == 2)
    exchanger.manners[servers[0]]?.latency = .milliseconds(10)
    #expect(ask(servers) == (1, .milliseconds(10)))
  }

  @Test func `a negative answer of the second resolver waits for the first`() {
    exchanger.manners[servers[0]]?.latency = .milliseconds(500)
    exchanger.manners[servers[1]] = .init(code: .nxDomain, hasRecords: false)
    let two = Array(servers[..<2])
    #expect(ask(two).0 == 1)
    exchanger.manners[servers[0]] = nil
    loop.advance(by: .seconds(2))
    #expect(ask(two) == (nil, .milliseconds(750)))
    #expect(ask(two) == (nil, .milliseconds(10)))
  }

  @Test func `no resolver is silent on another network at first`() {
    exchanger.manners[servers[0]] = nil
    _ = ask(servers)
    client.networkHasChanged()
    _ = ask(servers)
    #expect(exchanger.asked.first?.server == servers[0])
  }

  @Test func `three resolvers are waited for at once, and the longest silent one makes room`() {
    let many = (1...8).map { SocketAddress(text: "198.51.100.\($0):53")! }
    exchanger.manners[many[7]] = .init()
    #expect(ask(many, timeout: .seconds(5)) == (8, .milliseconds(2110)))
    #expect(exchanger.mostOpen == 3)
    #expect(exchanger.asked.map(\.server) == many)
    // Those that were given up are silent.
    #expect(many[..<7].allSatisfy { client.standing.isSilent($0, at: loop.now) })
    exchanger.manners[many[7]] = nil
    #expect(ask(many, timeout: .seconds(5)) == (nil, .seconds(5)))
    #expect(exchanger.mostOpen == 3)
  }

  @Test func `one of many resolvers is heard if it answers within the time of three others`() {
    let many = (1...8).map { SocketAddress(text: "198.51.100.\($0):53")! }
    exchanger.manners[many[2]] = .init(latency: .milliseconds(800))
    #expect(ask(many, timeout: .seconds(5)) == (3, .milliseconds(1400)))
  }
}

@Suite struct `A resolver that refers to others` {
  private let loop = SimulatedLoop()
  private let servers = (1...2).map { SocketAddress(text: "192.0.2.\($0):53")! }

  private func record(_ owner: String, _ type: RecordType) -> ResourceRecord {
    ResourceRecord(
      owner: DomainName(text: owner)!, type: type, ttl: 300, rdata: DomainName(text: "ns.example")!.octets)
  }

  private func ask(
    _ authorities: [ResourceRecord], isAuthoritative: Bool = false, then other: ScriptedExchanger.Manner?
  ) -> Result<UInt8?, LocalDNSFailure> {
    let exchanger = ScriptedExchanger(on: loop)
    exchanger.manners[servers[0]] = .init(hasRecords: false, authorities: authorities, isAuthoritative: isAuthoritative)
    exchanger.manners[servers[1]] = other
    let client = LocalDNSClient(over: exchanger)
    return loop.run { [servers] in
      await client.ask(
        Question(name: DomainName(text: "www.example.com")!, type: .a), dnssecOK: false, checkingDisabled: false,
        servers: other == nil ? [servers[0]] : servers, timeout: .seconds(1)
      ).map { $0.message.answers.first?.rdata.last }
    }
  }

  @Test func `after a referral the next resolver is asked`() {
    #expect(ask([record("com", .ns)], then: .init()) == .success(2))
    #expect(ask([record("com", .ns)], then: nil) == .failure(.referral))
    #expect(ask([record("com", .ns)], then: .init(code: .refused)) == .failure(.responseCode(.refused)))
  }

  @Test func `a referral and NODATA are distinguished`() {
    #expect(ask([record("com", .ns), record("com", .soa)], then: .init()) == .success(nil))
    #expect(ask([], then: .init()) == .success(nil))
    #expect(ask([record("www.example.com", .ns)], isAuthoritative: true, then: .init()) == .success(nil))
  }
}
