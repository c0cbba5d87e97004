// BackgroundWork.swift -- background work: refreshing, following the network, saving the cache across restarts.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import Files
import Fleet
import Logging
import MessageCache
import Persistence
import Ranking
import Refresh
import Resolver
import Upstreams

/// All work that does not answer a client's query.
final class BackgroundWork {
  private let parts: Parts
  private let refresher: Refresher?
  private let follower: NetworkFollower
  private let keeper: CacheKeeper?
  private let ledger: RefreshLedger?
  /// The settings of ranking at the start; nil without a cache.
  private let ranking: RankingSettings?
  private let warn: @Sendable (String) -> Void
  private let loop: EventLoop
  /// The configuration at the start.
  private let configuration: Configuration
  private var fleetSettings: FleetConnection.Settings?
  /// The connection to the store of a fleet; nil without one.
  private(set) var fleet: FleetConnection?
  private var isCacheLoaded = false

  /// The objects that it works on.
  struct Parts {
    var resolver: Resolver
    /// Those of the current configuration.
    var providers: () -> ProviderSet
    var cache: MessageCache
    var network: CurrentNetwork
    var local: LocalDNSUpstream
    var loopGuard: LoopGuard
    var nat64: NAT64
    /// `refresh.keep` and `refresh.preload`, without names that are answered locally.
    var keep: [RoutedQuestion]
    var preload: [RoutedQuestion]
    var meanings: CacheMeanings
    var state: StateFolder
    var networkLog: NetworkLog
    var fleet: FleetConnection.Parts
    var routes: [Route]
    /// Called at the start, when the kernel has reported a change, and after a sleep.
    var addressesMayHaveChanged: () -> Void = {}
    /// Called when the cache file was read.
    var cacheIsLoaded: () -> Void = {}
    /// Called when connections are renewed.
    var networkHasChanged: () -> Void = {}
    /// Receives the search domains at the start, on another network, and when they change.
    var searchDomainsFound: ([DomainName], _ isNew: Bool) -> Void = { _, _ in }
  }

  init(_ configuration: Configuration, _ parts: Parts, loop: EventLoop, logger: Logger) {
    self.parts = parts
    let isCaching = configuration.cache.isEnabled
    let ledger = isCaching ? RefreshLedger(in: parts.state, on: loop, logger) : nil
    self.ledger = ledger
    refresher =
      isCaching
      ? Refresher(
        configuration, keep: parts.keep, preload: parts.preload, resolver: parts.resolver,
        cache: parts.cache, loop: loop, ledger: ledger
      ) { logger.info("\($0)") } : nil
    ranking = isCaching ? RankingSettings(configuration) : nil
    warn = { logger.warning("\($0)") }
    self.loop = loop
    self.configuration = configuration
    fleetSettings = FleetConnection.settings(configuration, parts.routes)
    follower = NetworkFollower(parts, refresher, logger)
    keeper = (isCaching ? configuration.cache.persist : nil).map { path in
      if let problem = FileProblem.foreseeable(at: path) { logger.warning("the cache will not be saved: \(problem)") }
      return CacheKeeper(parts.cache, CacheFile(path: path), parts.meanings, on: loop) { note in
        logger.log(level: note.isProblem ? .warning : note.isRoutine ? .debug : .info, "\(note)")
      }
    }
  }

  /// Starts all of it. The loop must be running.
  func start(on loop: EventLoop, notAt listeners: [SocketAddress]) {
    loop.assertCurrent()
    refresher?.begin()
    if let ranking {
      parts.resolver.assumeIsolated { [warn] in
        $0.beginRanking(ranking, prober: SocketProber(on: loop, warn: warn), note: warn)
      }
    }
    fleet = fleetSettings.map { FleetConnection($0, parts.fleet, on: loop) }
    fleet?.share(configuration, parts.providers().upstreams)
    if let keeper { parts.resolver.assumeIsolated { $0.save = { await keeper.saveNow() } } }
    follower.start(on: loop, notAt: listeners)
    parts.providers().start()
    // Fresh entries of the cache file need no query.
    guard let keeper else {
      startFleet()
      return startRefreshing([], on: loop)
    }
    // The file may contain names below a name that is NXDOMAIN by now.
    parts.resolver.assumeIsolated { $0.expectNames() }
    keeper.start { [self] in
      loop.startTask { [resolver = parts.resolver] in
        await resolver.console { await $0.learnNames() }
        await resolver.console { await $0.rankCachedAnswers() }
      }
      startFleet()
      startRefreshing($0, on: loop)
      parts.cacheIsLoaded()
    }
  }

  /// Uses the store from now on: the flushes that this daemon has missed concern the cache as it was saved.
  private func startFleet() {
    isCacheLoaded = true
    fleet?.start()
  }

  private func startRefreshing(_ loaded: [LoadedEntry], on loop: EventLoop) {
    guard let refresher else { return }
    refresher.schedule(loaded)
    follower.whenKnown(on: loop) { refresher.start() }
  }

  /// Uses another configuration from now on.
  func use(
    _ configuration: Configuration, keep: [RoutedQuestion], preload: [RoutedQuestion], _ meanings: CacheMeanings,
    _ routes: [Route], isForNetwork: Bool
  ) {
    keeper?.meanings = meanings
    let settings = FleetConnection.settings(configuration, routes)
    if settings != fleetSettings {
      fleet?.close()
      fleetSettings = settings
      fleet = settings.map { FleetConnection($0, parts.fleet, on: loop) }
      if isCacheLoaded { startFleet() }
    } else {
      fleet?.retry()
    }
    fleet?.share(configuration, parts.providers().upstreams)
    let ranking = RankingSettings(configuration)
    parts.resolver.assumeIsolated { $0.useRanking(ranking) }
    refresher?.use(configuration, keep: keep, preload: preload, isForNetwork: isForNetwork)
  }

  /// Whether the cache is being loaded or saved, with the numbers that were valid when that began.
  var isMovingCache: Bool { keeper?.isBusy ?? false }

  /// Closes the cache keeper and the ledgers properly. The loop must have stopped.
  func close() {
    fleet?.close()
    fleet = nil
    parts.fleet.ledger.close()
    keeper?.close()
    ledger?.close()
  }
}

extension RefreshLedger {
  /// Counts what refreshing costs, in a file of the state directory; without it, a restart resets the count.
  fileprivate convenience init(in folder: StateFolder, on loop: EventLoop, _ logger: Logger) {
    let file = folder.file("refreshes") { problem in
      logger.debug("refresh.budget_per_day starts from zero with a restart: \(problem)")
    }
    self.init(file, on: loop)
  }
}

extension FleetLedger {
  /// Stores what a fleet's store has counted; without it, a restart adds the day's units to the fleet's again.
  convenience init(in folder: StateFolder, on loop: EventLoop, _ logger: Logger) {
    let file = folder.file("fleet") { problem in
      logger.debug("a restart adds this daemon's units of the day to the fleet's again: \(problem)")
    }
    self.init(file, on: loop)
  }
}
