// LocalDNSUpstreamTests.swift -- what a failure of LocalDNS is called in the log, and what it gives rise to.

import Configuration
import DNSWire
import EventLoop
import Glibc
import HTTPDNS
import Logging
import Synchronization
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import LocalDNS
@testable import Resolver
@testable import Upstreams

@Suite struct LocalDNSUpstreamTests {
  @Test func `an error of the network has the kernel's words`() {
    let failure = UpstreamFailure(LocalDNSFailure.network(ECONNREFUSED))
    #expect(failure.reason == "Connection refused")
    #expect(failure.extendedError == .networkError)
  }

  @Test func `a silent server is probed for a loop once a minute`() {
    let loop = SimulatedLoop()
    let transport = SilentTransport()
    let loopGuard = LoopGuard(transport, loop: loop, logger: Logger(label: "quiet") { _ in SwiftLogNoOpLogHandler() })
    let server = PlainResolver(SocketAddress(octets: [192, 0, 2, 53], port: 53)!)
    let servers = [Configuration.LocalServer(server)]
    let upstream = LocalDNSUpstream(
      transport, on: loop, systemServers: [], configured: servers, loopGuard: loopGuard)
    let question = HTTPDNSQuestion(name: DomainName(text: "www.example.com")!, type: .a)
    func ask() {
      loop.run { _ = await upstream.ask(question, servers, timeout: .seconds(1)) }
      loop.advance(by: .zero)
    }
    for _ in 0..<10 { ask() }
    #expect(transport.probes.count == 1)
    loop.advance(by: .seconds(60))
    ask()
    #expect(transport.probes.count == 2)
    #expect(upstream.hasServers(servers))
    loopGuard.received(transport.probes[1])
    #expect(!upstream.hasServers(servers))
  }
}

/// No resolver answers.
private final class SilentTransport: LocalDNSTransport {
  private let asked = Mutex<[DomainName]>([])
  /// The names of probes.
  var probes: [DomainName] { asked.withLock { $0 } }

  func ask(
    _ question: Question, dnssecOK: Bool, checkingDisabled: Bool, servers: [PlainResolver], timeout: Duration,
    objection: @escaping (Message) -> String?
  ) async -> Result<LocalDNSAnswer, UnansweredQuestion> {
    if question.type == .txt { asked.withLock { $0.append(question.name) } }
    return .failure(UnansweredQuestion(reason: .timedOut, steps: servers.map { .init(server: $0, reason: .timedOut) }))
  }
}
