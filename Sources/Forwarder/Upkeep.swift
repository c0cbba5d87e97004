// Upkeep.swift -- what goes on beside queries: refreshing, following the network, keeping the cache beyond a restart.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import Logging
import MessageCache
import Persistence
import Refresh

/// Everything that a daemon does without being asked.
final class Upkeep: @unchecked Sendable {
  private let resolver: Resolver
  private let refresher: Refresher?
  private let follower: NetworkFollower
  private let keeper: CacheKeeper?

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
  }

  init(_ configuration: Configuration, _ parts: Parts, loop: EventLoop, logger: Logger) {
    resolver = parts.resolver
    let isCaching = configuration.cache.isEnabled
    refresher =
      isCaching
      ? Refresher(
        RefresherSettings(configuration.refresh), keep: parts.keep, preload: parts.preload, resolver: resolver,
        cache: parts.cache, loop: loop
      ) { logger.info("\($0)") } : nil
    follower = NetworkFollower(
      resolver: resolver, refresher: refresher, cache: parts.cache, network: parts.network, local: parts.local,
      loopGuard: parts.loopGuard, logger: logger)
    keeper = (isCaching ? configuration.cache.persist : nil).map { path in
      CacheKeeper(parts.cache, CacheFile(path: path), parts.meanings, on: loop) { note in
        logger.log(level: note.isProblem ? .warning : note.isRoutine ? .debug : .info, "\(note)")
      }
    }
  }

  /// Begins. The loop runs.
  func start(on loop: EventLoop, notAt listeners: [SocketAddress]) {
    keeper?.start()
    if let keeper { resolver.assumeIsolated { $0.save = { await keeper.saveNow() } } }
    follower.start(on: loop, notAt: listeners)
    resolver.assumeIsolated { $0.startUpstreams() }
    if let refresher { follower.whenKnown(on: loop) { refresher.start() } }
  }

  /// Ends what has to be ended properly. The loop does not run any more.
  func close() { keeper?.close() }
}

extension CacheMeanings {
  /// What routes and sources of entries stand for in a configuration.
  init(_ configuration: Configuration, _ routes: [Route]) {
    let names = configuration.providers.map { "\($0.name) \($0.service)" }
    var sources = [EntrySource.localDNS.number: "localdns"]
    for (index, name) in names.enumerated() { sources[EntrySource.provider(index).number] = name }
    sources[EntrySource.nobody.number] = "nobody"
    self.init(
      routes: routes.map { route in
        let providers = route.providers.map { names[$0] }.joined(separator: ", ")
        return "\(providers); \(route.localServers); \(route.ttl); \(route.fallsBack) \(route.isNetwork)"
      }, sources: sources)
  }
}

extension RefresherSettings {
  init(_ refresh: Configuration.Refresh) {
    self.init(
      timing: RefreshTiming(fraction: refresh.at, minimumTTL: refresh.minTTL.nanoseconds),
      heat: HeatPolicy(hotHits: refresh.hotHits, giveUpAfter: refresh.giveUpAfter),
      transfersPerMinute: refresh.budgetPerMinute, transfersPerDay: refresh.budgetPerDay, batches: refresh.batch)
  }
}
