// LoopGuard.swift -- detects LocalDNS servers that forward our own queries back to us, and excludes them.
//
// Resolver's loop only.

import DNSWire
import EventLoop
import LocalDNS
import Logging

/// Probes LocalDNS servers with unique names.
package final class LoopGuard: @unchecked Sendable {
  private var probes = LoopProbe()
  private let client: any LocalDNSTransport
  private let loop: any Loop
  private let logger: Logger
  private var forgetting: LoopTimer?
  private var nextSuspicion = BootInstant(nanoseconds: .min)
  /// Servers that forward queries back to us.
  private(set) var circular: Set<SocketAddress> = []

  /// How long a server may take to forward a probe.
  private static let patience = Duration.seconds(5)
  /// The minimum interval between probes of servers that do not answer.
  private static let calm = Duration.seconds(60)

  package init(_ client: any LocalDNSTransport, loop: any Loop, logger: Logger) {
    self.client = client
    self.loop = loop
    self.logger = logger
  }

  /// The zone of all probe names; the resolver passes queries for them to `received`.
  package var zone: DomainName { probes.zone }

  /// Sends each server a unique name. Servers excluded before get another chance.
  package func probe(_ servers: [SocketAddress]) {
    loop.assertCurrent()
    circular = circular.filter { !servers.contains($0) }
    forgetting?.cancel()
    let asked = probes.begin(servers)
    guard !asked.isEmpty else { return }
    forgetting = loop.schedule(after: LoopGuard.patience) { [weak self] in self?.probes.forget() }
    Task(executorPreference: loop) { [client] in await LoopProbe.send(asked, by: client, timeout: .seconds(2)) }
  }

  /// Probes servers that did not answer, at most once per `calm`, since one of them may now forward to us.
  func suspect(_ servers: [SocketAddress]) {
    loop.assertCurrent()
    guard loop.now >= nextSuspicion else { return }
    nextSuspicion = loop.now + LoopGuard.calm
    probe(servers)
  }

  /// Handles a query for a name in the zone: excludes the server that received this probe.
  package func received(_ name: DomainName) {
    loop.assertCurrent()
    guard let server = probes.server(for: name), circular.insert(server).inserted else { return }
    logger.error("LocalDNS server \(server) forwards our own queries back to us (loop); no longer used")
  }
}
