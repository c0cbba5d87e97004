// NetworkFollower.swift -- adapts connections, resolvers and cache entries when the machine changes networks.
//
// Resolver's loop only. It wakes up for events of the kernel or of a file, and never polls.

import DNSWire
import EventLoop
import Frontend
import LocalDNS
import Logging
import MessageCache
import NetworkWatch
import Refresh
import Resolver
import Upstreams

/// Updates everything that depends on the network when that changes.
final class NetworkFollower {
  private let parts: BackgroundWork.Parts
  private let refresher: Refresher?
  private let logger: Logger
  private var watch: NetworkWatch?
  private var clock: ClockWatch?
  private var resolvers: ResolverWatch?
  /// The last network whose identity was completely known.
  private var settled: NetworkIdentity?
  /// Whether there was no network yet when the daemon started, as early at boot.
  private var beganOffline = false
  /// Whether the machine has slept since it was last on a known network.
  private var hasSlept = false
  /// The footing that the connections were opened on.
  private var footing = FollowedFooting(nil)
  /// Whether the connections were renewed since `settled` was known.
  private var hasRenewed = false
  /// The work that waits until the first network is known.
  private var beginning: (() -> Void)?
  private let beginTimer = OwnedTimer()

  /// How long the daemon waits for a router's link-layer address before it continues without a network.
  private static let patience = Duration.seconds(1)

  init(_ parts: BackgroundWork.Parts, _ refresher: Refresher?, _ logger: Logger) {
    self.parts = parts
    self.refresher = refresher
    self.logger = logger
  }

  /// Determines the current network, and follows its changes from now on.
  func start(on loop: EventLoop, notAt listeners: [SocketAddress]) {
    loop.assertCurrent()
    // Safe: the resolver is on this loop.
    nonisolated(unsafe) let (loopGuard, nat64) = (parts.loopGuard, parts.nat64)
    parts.resolver.assumeIsolated {
      $0.loopGuard = loopGuard
      $0.nat64 = nat64
    }
    parts.nat64.changed = { [weak self] in self?.prefixHasChanged() }
    resolvers = ResolverWatch(on: loop, notAt: listeners) { [weak self] in self?.use($0) }
    do throws(NetworkWatchError) {
      watch = try NetworkWatch(on: loop) { [weak self] in self?.networkChanged($0) }
      clock = try ClockWatch(on: loop) { [weak self] in if $0.contains(.resume) { self?.networkChanged($0) } }
    } catch { logger.warning("changes of the network are not noticed: \(error)") }
    footing = FollowedFooting(currentFooting())
    // They may have changed before there was a watch.
    parts.addressesMayHaveChanged()
    adoptNetwork(isStart: true)
    parts.searchDomainsFound(resolvers?.current.searchDomains ?? [], true)
    // The resolvers may have changed since the daemon first read them.
    if let found = resolvers?.current, parts.local.usesSystemServers {
      use(found)
    } else {
      parts.loopGuard.probe(parts.local.allServers)
    }
    lookForNAT64()
  }

  /// Finds out how the current network reaches IPv4.
  private func lookForNAT64() {
    guard let watch else { return }
    parts.nat64.networkIs(
      hasIPv4Route: watch.hasDefaultRoute(isIPv6: false), hasIPv6Route: watch.hasDefaultRoute(isIPv6: true))
  }

  private func prefixHasChanged() {
    parts.networkLog.log("nat64", "IPv4 is reached \(parts.nat64.prefix.map { "by the prefix \($0)" } ?? "directly")")
    renew()
  }

  /// Calls `body` once the network that answers belong to is known: usually at once, otherwise after up to 1 s.
  func whenKnown(on loop: any Loop, _ body: @escaping () -> Void) {
    loop.assertCurrent()
    guard settled == nil, parts.network.number != 0 else { return body() }
    beginning = body
    beginTimer.set(after: NetworkFollower.patience, on: loop, for: self) {
      // No server can have been asked through a router that is not there.
      if $0.beginning != nil { $0.beganOffline = true }
      $0.begin()
    }
  }

  private func begin() {
    beginning?()
    beginning = nil
  }

  /// Uses the resolvers that the network provides, at the start and after each change.
  private func use(_ found: SystemResolvers) {
    parts.local.systemServers = found.servers
    let list = found.servers.isEmpty ? "none" : found.servers.map(\.description).joined(separator: ", ")
    let omitted = found.omitted.map { "; \($0.server) is not used: \($0.reason)" }.joined()
    parts.networkLog.log("resolvers", "the network's resolvers: \(list)\(omitted)")
    parts.loopGuard.probe(parts.local.allServers)
    lookForNAT64()
    parts.searchDomainsFound(found.searchDomains, false)
  }

  private func networkChanged(_ change: NetworkChange) {
    guard change != .gateway else { return adoptNetwork(isStart: false) }
    logger.debug("the network has changed: \(change)")
    parts.addressesMayHaveChanged()
    if change.contains(.resume) {
      hasSlept = true
      refresher?.hasSlept()
      parts.resolver.assumeIsolated { $0.hasSlept() }
    }
    let carries = footing.move(to: currentFooting())
    let isNew = change.contains(.resume) || !carries
    if isNew { renew() }
    if resolvers?.check() != true, isNew {
      parts.loopGuard.probe(parts.local.allServers)
      lookForNAT64()
    }
    adoptNetwork(isStart: false)
  }

  /// Renews connections, since the old ones may be dead, and forgets failures.
  private func renew() {
    hasRenewed = true
    parts.local.networkHasChanged()
    parts.providers().networkHasChanged()
    parts.resolver.assumeIsolated { $0.networkHasChanged() }
    parts.networkHasChanged()
  }

  private func currentFooting() -> NetworkFooting? {
    watch?.footing(toward: Set(parts.providers().upstreams.flatMap(\.serverAddresses)))
  }

  private func change(to number: UInt32) {
    guard number != parts.network.number else { return }
    parts.network.change(to: number)
    parts.resolver.assumeIsolated { $0.networkIsAnother() }
  }

  /// Determines the current network. Entries of another network stay cached and are fetched again when they are used;
  /// so do entries from before a sleep. A return to the same network, as after a brief link failure, changes nothing.
  private func adoptNetwork(isStart: Bool) {
    guard let identity = try? watch?.identity() else { return }
    guard identity != .none else {
      if isStart { beganOffline = true }
      return
    }
    guard identity.isComplete else {
      // After a link failure, the router is usually the same one.
      if settled.map({ !identity.mayBecome($0) }) ?? true { change(to: identity.number) }
      watch?.knock()
      return
    }
    change(to: identity.number)
    guard identity != settled || hasSlept else {
      hasRenewed = false
      return
    }
    // The first known network is the one that the daemon started in, unless it started without one.
    let isNew = settled != nil || beganOffline
    if identity != settled {
      parts.networkLog.log("identity", "network: \(identity)")
      // A different router has the same address: no other event has reported that.
      if settled != nil, !hasRenewed { renew() }
      if settled != nil, let domains = resolvers?.current.searchDomains { parts.searchDomainsFound(domains, true) }
    }
    settled = identity
    hasRenewed = false
    hasSlept = false
    begin()
    guard isNew else { return }
    parts.cache.beginEpoch()
    refresher?.networkHasChanged()
  }
}
