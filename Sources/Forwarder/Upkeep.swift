// Upkeep.swift -- what goes on beside queries: refreshing, following the network, keeping the cache beyond a restart.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import Files
import Frontend
import Logging
import MessageCache
import Persistence
import Refresh
import Resolver
import Upstreams

/// Everything that a daemon does without being asked.
final class Upkeep: @unchecked Sendable {
  private let resolver: Resolver
  private let refresher: Refresher?
  private let follower: NetworkFollower
  private let keeper: CacheKeeper?
  private let ledger: RefreshLedger?

  /// What it works on.
  struct Parts {
    var resolver: Resolver
    var cache: MessageCache
    var network: CurrentNetwork
    var local: LocalDNSUpstream
    var loopGuard: LoopGuard
    /// `refresh.keep` and `refresh.preload`, without names that are answered here.
    var keep: [RoutedQuestion]
    var preload: [RoutedQuestion]
    var meanings: CacheMeanings
    var state: StateFolder
    var networkLog: NetworkLog
    /// Told of the search domains that the network hands out.
    var searchDomainsFound: ([DomainName], _ isNews: Bool) -> Void = { _, _ in }
  }

  init(_ configuration: Configuration, _ parts: Parts, loop: EventLoop, logger: Logger) {
    resolver = parts.resolver
    let isCaching = configuration.cache.isEnabled
    let ledger = isCaching ? RefreshLedger(in: parts.state, on: loop, logger) : nil
    self.ledger = ledger
    refresher =
      isCaching
      ? Refresher(
        RefresherSettings(configuration.refresh), keep: parts.keep, preload: parts.preload, resolver: resolver,
        cache: parts.cache, loop: loop, ledger: ledger
      ) { logger.info("\($0)") } : nil
    follower = NetworkFollower(
      resolver: resolver, refresher: refresher, cache: parts.cache, network: parts.network, local: parts.local,
      loopGuard: parts.loopGuard, logger: logger, news: parts.networkLog, searchDomainsFound: parts.searchDomainsFound)
    keeper = (isCaching ? configuration.cache.persist : nil).map { path in
      if let problem = FileProblem.foreseeable(at: path) { logger.warning("the cache will not be saved: \(problem)") }
      return CacheKeeper(parts.cache, CacheFile(path: path), parts.meanings, on: loop) { note in
        logger.log(level: note.isProblem ? .warning : note.isRoutine ? .debug : .info, "\(note)")
      }
    }
  }

  /// Begins. The loop runs.
  func start(on loop: EventLoop, notAt listeners: [SocketAddress]) {
    refresher?.begin()
    if let keeper { resolver.assumeIsolated { $0.save = { await keeper.saveNow() } } }
    follower.start(on: loop, notAt: listeners)
    resolver.assumeIsolated { $0.startUpstreams() }
    // What the file has fresh need not be asked for.
    guard let keeper else { return resolveAhead([], on: loop) }
    // What is in the file may have names below one that is denied meanwhile.
    resolver.assumeIsolated { $0.namesBelow.isWhole = false }
    keeper.start { [self] in
      Task(executorPreference: loop) { [resolver] in await resolver.learnNames() }
      resolveAhead($0, on: loop)
    }
  }

  private func resolveAhead(_ loaded: [LoadedEntry], on loop: EventLoop) {
    guard let refresher else { return }
    refresher.schedule(loaded)
    follower.whenKnown(on: loop) { refresher.start() }
  }

  /// Goes by another configuration from now on.
  func use(
    _ configuration: Configuration, keep: [RoutedQuestion], preload: [RoutedQuestion], _ meanings: CacheMeanings,
    isForNetwork: Bool
  ) {
    keeper?.meanings = meanings
    refresher?.use(
      RefresherSettings(configuration.refresh), keep: keep, preload: preload, isForNetwork: isForNetwork)
  }

  /// Whether the cache is being loaded or saved, with the numbers that counted when that began.
  var isMovingCache: Bool { keeper?.isBusy ?? false }

  /// Ends what has to be ended properly. The loop does not run any more.
  func close() {
    keeper?.close()
    ledger?.close()
  }
}

extension RefreshLedger {
  /// What refreshing costs, in a file of the state directory; where there is none, a restart begins anew.
  fileprivate convenience init(in folder: StateFolder, on loop: EventLoop, _ logger: Logger) {
    let file = folder.file("refreshes") { problem in
      logger.debug("refresh.budget_per_day starts from zero with a restart: \(problem)")
    }
    self.init(file, on: loop)
  }
}

extension RefresherSettings {
  init(_ refresh: Configuration.Refresh) {
    self.init(
      timing: RefreshTiming(fraction: refresh.at, minimumTTL: refresh.minTTL.nanoseconds),
      heat: HeatPolicy(hotHits: refresh.hotHits, giveUpAfter: refresh.giveUpAfter),
      unitsPerMinute: refresh.budgetPerMinute, unitsPerDay: refresh.budgetPerDay,
      transfersPerMinute: refresh.freePerMinute, batches: refresh.batch)
  }
}
