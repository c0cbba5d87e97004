// SleepTests.swift -- responses that were on their way while the machine slept, on a virtual clock.

import DNSWire
import EventLoop
import LocalDNSTestSupport
import TestSupport
import Testing

@testable import LocalDNS

@Suite struct `A machine that sleeps` {
  private let loop = SimulatedLoop()
  private let laboratory: Laboratory
  private let client: LocalDNSClient
  private let servers: [PlainResolver]

  init() {
    laboratory = Laboratory(on: loop)
    client = LocalDNSClient(over: laboratory)
    servers = (1...2).map { PlainResolver(SocketAddress(text: "192.0.2.\($0):53")!) }
  }

  /// The answer if the machine sleeps after the first query.
  private func ask(_ servers: [PlainResolver], sleeping sleep: Duration) -> Result<Message, LocalDNSFailure> {
    for server in self.servers {
      laboratory.servers[server.address] = LabServer { [loop, first = self.servers[0]] query in
        if query.count == 0, server == first { loop.sleep(through: sleep) }
        return LabZone.usual.server.habit(query)
      }
    }
    return loop.run { [client] in
      await client.ask(
        Question(name: DomainName(text: "v4.example")!, type: .a), dnssecOK: false, checkingDisabled: false,
        servers: servers, timeout: .seconds(2)
      ).map(\.message).mapError(\.reason)
    }
  }

  @Test(arguments: [Duration.seconds(5), .seconds(3600), .seconds(86_400 * 7)])
  func `a reply from before a sleep is discarded, since its TTL does not cover the sleep`(sleep: Duration) throws {
    #expect(throws: LocalDNSFailure.timedOut) { try ask(Array(servers[..<1]), sleeping: sleep).get() }
    #expect(client.counters.timeouts == 1)
    // And nothing else: the next one counts.
    #expect(try ask(Array(servers[..<1]), sleeping: .zero).get().answers.first?.ttl == 300)
    #expect(client.counters.timeouts == 1)
  }

  @Test func `no other resolver is asked after a sleep that used up the time`() throws {
    #expect(throws: LocalDNSFailure.timedOut) { try ask(servers, sleeping: .seconds(60)).get() }
    #expect(laboratory.queries[servers[1].address] == nil)
  }

  @Test func `a reply that is slightly late is accepted`() throws {
    #expect(try ask(Array(servers[..<1]), sleeping: .seconds(1)).get().answers.first?.ttl == 300)
  }
}
