// LoopGuard.swift -- finds LocalDNS servers that send our own queries back to us, and asks them no more.
//
// Resolver's loop only.

import DNSWire
import EventLoop
import LocalDNS
import Logging

/// Probes LocalDNS servers with names that nobody else knows.
package final class LoopGuard: @unchecked Sendable {
  private var probes = LoopProbe()
  private let client: any LocalDNSTransport
  private let loop: any Loop
  private let logger: Logger
  private var forgetting: LoopTimer?
  private var nextSuspicion = BootInstant(nanoseconds: .min)
  /// Servers that lead back to us.
  private(set) var circular: Set<SocketAddress> = []

  /// How long a server may take to pass a probe on.
  private static let patience = Duration.seconds(5)
  /// How often servers are probed that do not answer.
  private static let calm = Duration.seconds(60)

  package init(_ client: any LocalDNSTransport, loop: any Loop, logger: Logger) {
    self.client = client
    self.loop = loop
    self.logger = logger
  }

  /// Where the names of all probes lie: queries for them come to the resolver.
  package var zone: DomainName { probes.zone }

  /// Asks each server for a name of its own, and gives those a chance that led back to us before.
  package func probe(_ servers: [SocketAddress]) {
    circular = circular.filter { !servers.contains($0) }
    forgetting?.cancel()
    let asked = probes.begin(servers)
    guard !asked.isEmpty else { return }
    forgetting = loop.schedule(after: LoopGuard.patience) { [weak self] in self?.probes.forget() }
    Task(executorPreference: loop) { [client] in await LoopProbe.send(asked, by: client, timeout: .seconds(2)) }
  }

  /// Those have not answered: one of them may lead back to us by now. They are probed once in a while.
  func suspect(_ servers: [SocketAddress]) {
    guard loop.now >= nextSuspicion else { return }
    nextSuspicion = loop.now + LoopGuard.calm
    probe(servers)
  }

  /// A query for a name in the zone came in.
  package func received(_ name: DomainName) {
    guard let server = probes.server(for: name), circular.insert(server).inserted else { return }
    logger.error("LocalDNS server \(server) sends queries back to this program, and is not asked any more")
  }
}
