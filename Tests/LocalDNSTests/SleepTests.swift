// SleepTests.swift -- responses that were on their way while the machine slept, on a virtual clock.

import DNSWire
import EventLoop
import TestSupport
import Testing

@testable import LocalDNS

/// Servers that answer with one address after 10 ms; the machine may sleep at that time.
private final class ScriptedExchanger: QueryExchanger, @unchecked Sendable {
  private let loop: SimulatedLoop
  /// How long the machine sleeps during each exchange.
  var sleeps: [Duration] = []
  private(set) var asked: [SocketAddress] = []
  let ignoredReplies: UInt64 = 0
  var clock: any Loop { loop }

  init(on loop: SimulatedLoop) { self.loop = loop }

  func exchange(
    _ query: PreparedQuery, with server: SocketAddress, over transport: ExchangeTransport, until deadline: BootInstant
  ) async -> ExchangeOutcome {
    asked.append(server)
    if !sleeps.isEmpty { loop.sleep(through: sleeps.removeFirst()) }
    await loop.sleep(for: .milliseconds(10))
    guard var message = try? Message.parse(query.octets) else { return .failure(.closed) }
    message.header.qr = true
    message.answers = [
      ResourceRecord(owner: message.questions[0].question.name, type: .a, ttl: 300, rdata: [192, 0, 2, 1])
    ]
    return .response(message)
  }
}

@Suite struct `A machine that sleeps` {
  private let loop = SimulatedLoop()
  private let servers = ["192.0.2.53:53", "192.0.2.54:53"].map { SocketAddress(text: $0)! }

  private func ask(
    _ client: LocalDNSClient, _ servers: [SocketAddress], timeout: Duration = .seconds(2)
  ) -> Result<Message, LocalDNSFailure> {
    loop.run {
      await client.ask(
        Question(name: DomainName(text: "www.example.com")!, type: .a), dnssecOK: false, checkingDisabled: false,
        servers: servers, timeout: timeout
      ).map(\.message)
    }
  }

  @Test(arguments: [Duration.seconds(5), .seconds(3600), .seconds(86_400 * 7)])
  func `a reply from before a sleep is discarded, since its TTL does not cover the sleep`(sleep: Duration) throws {
    let exchanger = ScriptedExchanger(on: loop)
    let client = LocalDNSClient(over: exchanger)
    exchanger.sleeps = [sleep]
    #expect(throws: LocalDNSFailure.timedOut) { try ask(client, Array(servers[..<1])).get() }
    #expect(client.counters.timeouts == 1)
    // And nothing else: the next one counts.
    #expect(try ask(client, Array(servers[..<1])).get().answers.first?.ttl == 300)
    #expect(client.counters.timeouts == 1)
  }

  @Test func `no other resolver is asked after a sleep that used up the time`() throws {
    let exchanger = ScriptedExchanger(on: loop)
    let client = LocalDNSClient(over: exchanger)
    exchanger.sleeps = [.seconds(60)]
    #expect(throws: LocalDNSFailure.timedOut) { try ask(client, servers).get() }
    #expect(exchanger.asked == [servers[0]])
  }

  @Test func `the next resolver is asked after a short sleep`() throws {
    let exchanger = ScriptedExchanger(on: loop)
    let client = LocalDNSClient(over: exchanger)
    let five = servers + (55...57).map { SocketAddress(text: "192.0.2.\($0):53")! }
    // A fifth of two seconds for each, and more than twice that for the nap.
    exchanger.sleeps = [.seconds(1)]
    #expect(try ask(client, five).get().answers.first?.rdata == [192, 0, 2, 1])
    #expect(exchanger.asked == Array(five[..<2]))
    #expect(client.counters.timeouts == 1)
  }

  @Test func `a reply that is slightly late is accepted`() throws {
    let exchanger = ScriptedExchanger(on: loop)
    exchanger.sleeps = [.seconds(3)]
    #expect(try ask(LocalDNSClient(over: exchanger), Array(servers[..<1])).get().answers.first?.ttl == 300)
  }
}
