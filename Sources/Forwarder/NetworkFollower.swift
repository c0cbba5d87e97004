// NetworkFollower.swift -- follows the machine from one network to another: connections, resolvers, entries.
//
// Resolver's loop only. It wakes up when the kernel or a file has something to tell, and never by itself.

import DNSWire
import EventLoop
import Frontend
import LocalDNS
import Logging
import MessageCache
import NetworkWatch
import Resolver
import Upstreams

/// Brings everything that depends on the network up to date when that changes.
final class NetworkFollower: @unchecked Sendable {
  private let resolver: Resolver
  private let refresher: Refresher?
  private let cache: MessageCache
  private let network: CurrentNetwork
  private let local: LocalDNSUpstream
  private let loopGuard: LoopGuard
  private let logger: Logger
  private let news: NetworkLog
  private var watch: NetworkWatch?
  private var clock: ClockWatch?
  private var resolvers: ResolverWatch?
  /// The last network whose identity was known as a whole.
  private var settled: NetworkIdentity?
  /// Whether there was no network yet when the program started, as early at boot.
  private var beganOffline = false
  /// Whether the machine has slept since it was on a network that is known.
  private var hasSlept = false
  /// What the connections stand on.
  private var footing = FollowedFooting(nil)
  /// Whether they were renewed since `settled` was known.
  private var hasRenewed = false
  /// Told of the search domains that are handed out, at the start, on another network, and when they are others.
  private let searchDomainsFound: ([DomainName], _ isNews: Bool) -> Void
  /// What waits for the first network to be known.
  private var beginning: (() -> Void)?

  /// How long a router may take to tell its link-layer address, before the program goes on without a network.
  private static let patience = Duration.seconds(1)

  init(
    resolver: Resolver, refresher: Refresher?, cache: MessageCache, network: CurrentNetwork, local: LocalDNSUpstream,
    loopGuard: LoopGuard, logger: Logger, news: NetworkLog,
    searchDomainsFound: @escaping ([DomainName], _ isNews: Bool) -> Void
  ) {
    self.resolver = resolver
    self.refresher = refresher
    self.cache = cache
    self.network = network
    self.local = local
    self.loopGuard = loopGuard
    self.logger = logger
    self.news = news
    self.searchDomainsFound = searchDomainsFound
  }

  /// Looks where the machine is, and follows it from now on.
  func start(on loop: EventLoop, notAt listeners: [SocketAddress]) {
    resolver.assumeIsolated { $0.loopGuard = loopGuard }
    resolvers = ResolverWatch(on: loop, notAt: listeners) { [unowned self] in use($0) }
    do throws(NetworkWatchError) {
      watch = try NetworkWatch(on: loop) { [unowned self] in networkChanged($0) }
      clock = try ClockWatch(on: loop) { [unowned self] in if $0.contains(.resume) { networkChanged($0) } }
    } catch { logger.warning("changes of the network are not noticed: \(error)") }
    footing = FollowedFooting(currentFooting())
    settle(isStart: true)
    searchDomainsFound(resolvers?.current.searchDomains ?? [], true)
    // They may have become others since the program looked first.
    if let found = resolvers?.current, local.usesSystemServers { use(found) } else { loopGuard.probe(local.allServers) }
  }

  /// Calls `body` once it is clear to which network answers belong: now, mostly, or in a moment.
  func whenKnown(on loop: any Loop, _ body: @escaping () -> Void) {
    guard settled == nil, network.number != 0 else { return body() }
    beginning = body
    loop.schedule(after: NetworkFollower.patience) { [weak self] in
      // Nobody can have been asked through a router that is not there.
      if self?.beginning != nil { self?.beganOffline = true }
      self?.begin()
    }
  }

  private func begin() {
    beginning?()
    beginning = nil
  }

  /// The resolvers that the network hands out are others, or those of the start.
  private func use(_ found: SystemResolvers) {
    local.systemServers = found.servers
    let list = found.servers.isEmpty ? "none" : found.servers.map(\.description).joined(separator: ", ")
    news.tell("resolvers", "the network's resolvers: \(list)")
    loopGuard.probe(local.allServers)
    searchDomainsFound(found.searchDomains, false)
  }

  private func networkChanged(_ change: NetworkChange) {
    guard change != .gateway else { return settle(isStart: false) }
    logger.debug("the network has changed: \(change)")
    if change.contains(.resume) {
      hasSlept = true
      refresher?.hasSlept()
    }
    let carries = footing.move(to: currentFooting())
    let isNews = change.contains(.resume) || !carries
    if isNews { renew() }
    if resolvers?.check() != true, isNews { loopGuard.probe(local.allServers) }
    settle(isStart: false)
  }

  /// Connections of before may be dead, and failures do not count any more.
  private func renew() {
    hasRenewed = true
    local.networkHasChanged()
    resolver.assumeIsolated { $0.networkHasChanged() }
  }

  private func currentFooting() -> NetworkFooting? {
    watch?.footing(toward: Set(resolver.assumeIsolated { $0.upstreams.flatMap(\.serverAddresses) }))
  }

  private func change(to number: UInt32) {
    guard number != network.number else { return }
    network.change(to: number)
    resolver.assumeIsolated { $0.networkIsAnother() }
  }

  /// Finds out which network this is. Entries of another one are kept, and fetched anew when they are used, and so are those
  /// from before a sleep; coming back to the same one, as after a link that failed for a moment, changes nothing.
  private func settle(isStart: Bool) {
    guard let identity = try? watch?.identity() else { return }
    guard identity != .none else {
      if isStart { beganOffline = true }
      return
    }
    guard identity.isComplete else {
      // After a link has failed its router is mostly the one that it was.
      if settled.map({ !identity.mayBecome($0) }) ?? true { change(to: identity.number) }
      watch?.knock()
      return
    }
    change(to: identity.number)
    guard identity != settled || hasSlept else {
      hasRenewed = false
      return
    }
    // The first to be known is the one that the program began in, unless it began in none.
    let isNews = settled != nil || beganOffline
    if identity != settled {
      news.tell("identity", "network: \(identity)")
      // The router is another one with the same address: nothing else has told that.
      if settled != nil, !hasRenewed { renew() }
      if settled != nil, let domains = resolvers?.current.searchDomains { searchDomainsFound(domains, true) }
    }
    settled = identity
    hasRenewed = false
    hasSlept = false
    begin()
    guard isNews else { return }
    cache.beginEpoch()
    refresher?.networkHasChanged()
  }
}
