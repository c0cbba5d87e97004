// LoopGuard.swift -- detects LocalDNS servers that forward our own queries back to us, and excludes them.
//
// Resolver's loop only. A server with an address that is not ours may still forward to us. It is asked for a name that
// no other client and no other server knows. If that name arrives at our listener, every query that the server cannot
// answer itself would loop. The labels are random, so that no server can have another one excluded.
//
// A wildcard listener may or may not receive what goes to an address such as 127.0.0.11. A server there is used when it
// has answered its probe, or when the probe has not come back for a second.

import DNSWire
import EventLoop
import LocalDNS
import Logging

/// Probes LocalDNS servers with unique names.
package final class LoopGuard {
  /// `<16 random hexadecimal digits>.example`, the zone of all probe names; the resolver passes queries for them to
  /// `received`. No such name exists, but resolvers forward queries for it (RFC 6761 section 6.5). A name below `test`
  /// would not do, because some resolvers answer it themselves.
  package let zone = DomainName(text: "\(LoopGuard.label()).example")!

  private let client: any LocalDNSTransport
  private let loop: any Loop
  private let listeners: [SocketAddress]
  private let logger: Logger
  /// The probes in flight, by their names.
  private var probes: [DomainName: (server: PlainResolver, end: BootInstant)] = [:]
  private var nextSuspicion = BootInstant(nanoseconds: .min)
  /// Servers that forward queries back to us.
  private var circular: Set<PlainResolver> = []
  /// Servers at doubtful addresses: those whose probe decides, and those that it has cleared.
  private var undecided: Set<PlainResolver> = []
  private var cleared: Set<PlainResolver> = []
  private let trials = TimerGroup()
  private let waiters: Waiters

  /// How long a name that arrives counts. A later one says nothing about the network at that time.
  private static let lifetime = Duration.seconds(5)
  /// How long a server at a doubtful address has to go without its probe coming back.
  package static let trial = Duration.seconds(1)
  /// The minimum interval between probes of servers that do not answer.
  private static let calm = Duration.seconds(60)

  /// - Parameter listeners: the addresses where the daemon receives queries.
  package init(_ client: any LocalDNSTransport, loop: any Loop, listeners: [SocketAddress] = [], logger: Logger) {
    self.client = client
    self.loop = loop
    self.listeners = listeners
    self.logger = logger
    waiters = Waiters(on: loop)
  }

  private static func label() -> String {
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Whether a server may be asked now.
  package func allows(_ server: PlainResolver) -> Bool { !circular.contains(server) && !undecided.contains(server) }

  /// Whether a server may be asked now, or when its probe has decided.
  package func mayAllow(_ server: PlainResolver) -> Bool { !circular.contains(server) }

  /// Waits until the probes of these servers have decided; returns at once for nearly all.
  package func decision(about servers: [PlainResolver]) async {
    func isOpen() -> Bool { servers.contains(where: undecided.contains) }
    while isOpen() { await waiters.wait(atMost: LoopGuard.trial, while: isOpen) }
  }

  /// Sends each server a unique name. Servers excluded before get another chance.
  package func probe(_ servers: [PlainResolver]) {
    loop.assertCurrent()
    let now = loop.now
    probes = probes.filter { now < $0.value.end }
    for server in servers {
      let name = DomainName(text: "\(LoopGuard.label()).\(zone.text)")!
      probes[name] = (server, now + LoopGuard.lifetime)
      circular.remove(server)
      if !cleared.contains(server), SystemResolvers.ownership(of: server, listeners) == .doubtful { doubt(server) }
      loop.startTask { [weak self, client] in
        _ = await client.ask(
          Question(name: name, type: .txt), dnssecOK: false, checkingDisabled: false, servers: [server],
          timeout: .seconds(2))
        self?.clear(server)
      }
    }
  }

  /// Probes servers that did not answer, at most once per `calm`, since one of them may now forward to us.
  package func suspect(_ servers: [PlainResolver]) {
    loop.assertCurrent()
    guard !servers.isEmpty, loop.now >= nextSuspicion else { return }
    nextSuspicion = loop.now + LoopGuard.calm
    probe(servers)
  }

  /// Handles a query for a name in the zone: excludes the server that received this probe.
  package func received(_ name: DomainName) {
    loop.assertCurrent()
    guard let (server, end) = probes[name], loop.now < end, circular.insert(server).inserted else { return }
    cleared.remove(server)
    clear(server)
    logger.error("LocalDNS server \(server) forwards our own queries back to us (loop); no longer used")
  }

  private func doubt(_ server: PlainResolver) {
    guard undecided.insert(server).inserted else { return }
    logger.info("LocalDNS server \(server) may be httpdnsd itself; it is used unless a probe comes back within 1 s")
    trials.add(after: LoopGuard.trial, on: loop) { [weak self] in self?.clear(server) }
  }

  private func clear(_ server: PlainResolver) {
    guard undecided.remove(server) != nil else { return }
    if !circular.contains(server) { cleared.insert(server) }
    waiters.resumeAll()
  }
}
