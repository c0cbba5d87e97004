// RuleParts.swift -- what rules need besides tables: lists that are followed and fetched, and firewall sets.
//
// Resolver's loop only.

import Configuration
import EventLoop
import FirewallSets
import HTTPClient
import ListStore
import Logging
import Resolver

/// The lists and sets of the rules in use.
final class RuleParts {
  let lists: ListStore
  let sets: SetKeeper
  /// Called when lists have changed: the tables are to be built again, or `listsAreLoaded` called.
  var listsHaveChanged: () -> Void {
    get { lists.changed }
    set { lists.changed = newValue }
  }

  /// - Parameter addresses: finds the addresses of a host that has lists.
  init(
    _ folder: ListFolder, _ clock: CertificateClock, _ resolver: Resolver, on loop: EventLoop, _ logger: Logger,
    addresses: @escaping HTTPListFetcher.Resolve
  ) {
    lists = ListStore(
      in: folder, fetcher: HTTPListFetcher(on: loop, clock: clock, resolve: addresses), on: loop,
      seed: .random(in: 0 ... .max), watch: { PathWatch($0, on: loop, changed: $1) },
      note: { logger.log(level: $0, "\($1)") })
    sets = SetKeeper(resolver, on: loop, logger)
  }

  /// Begins to follow the lists, which were loaded before, and to fill the sets.
  func start(_ plan: RoutingPlan) {
    use(plan)
    lists.start()
  }

  /// Tables of this plan are in use.
  func use(_ plan: RoutingPlan) {
    listsAreLoaded(plan.lists)
    sets.use(plan.routes)
  }

  /// A table of these lists is in use, or still is.
  func listsAreLoaded(_ loaded: LoadedLists) {
    lists.use(loaded.sources, loaded.texts)
    guard let source = loaded.sources.first(where: { loaded.unread[$0.place] != nil }) else {
      return lists.loaded(loaded.results, of: loaded.texts, in: loaded.time)
    }
    lists.notBuilt(
      .failed("it waits for list \(source.name), which cannot be read: \(loaded.unread[source.place]!)"),
      unread: loaded.unread, in: loaded.time)
  }
}

/// The writer of the sets of a configuration; nothing at all without sets.
final class SetKeeper {
  private let resolver: Resolver
  private let loop: EventLoop
  private let logger: Logger
  private var writer: SetWriter?
  private var filler: SetFiller?
  /// How long each route's addresses have to be in which sets.
  private var terms: [Terms] = []
  /// The sets that are to be filled again.
  private var wanted: Set<FirewallSetName> = []
  private var isRefilling = false
  /// Resumed when no set is to be filled again.
  private var waiting: [CheckedContinuation<Void, Never>] = []

  private struct Terms: Equatable {
    let sets: RouteSets?
    let stale: StalePolicy

    init(_ route: Route) { (sets, stale) = (route.sets, route.stale) }
  }

  init(_ resolver: Resolver, on loop: EventLoop, _ logger: Logger) {
    (self.resolver, self.loop, self.logger) = (resolver, loop, logger)
  }

  /// All sets, in the order of the configuration, as they were when they were last used or looked at.
  var statuses: [SetStatus] { writer?.statuses ?? [] }

  /// All sets as they are now.
  ///
  /// - Parameter refilled: whether the addresses of all cached answers are added to them again before.
  func look(refilled: Bool) async -> [SetStatus] {
    guard let writer else { return [] }
    // One that was emptied is filled again without being asked.
    await writer.look()
    if refilled, !writer.statuses.isEmpty {
      for status in writer.statuses { refill(status.name) }
      await withCheckedContinuation { waiting.append($0) }
      // It ends after the additions, whose answers do not wait for the kernel for long.
      await writer.look()
    }
    return writer.statuses
  }

  /// Uses the sets of these routes from now on.
  func use(_ routes: [Route]) {
    let names = routes.flatMap { $0.sets?.names ?? [] }
    guard writer != nil || !names.isEmpty else { return }
    let writer = writer ?? makeWriter()
    writer.apply(names)
    // Cached answers of a route that has got other sets, or keeps addresses for longer.
    let earlier = terms
    terms = routes.map { Terms($0) }
    for (number, terms) in terms.enumerated() where number >= earlier.count || terms != earlier[number] {
      for set in terms.sets?.names ?? [] { refill(set) }
    }
  }

  /// Adds the addresses of all cached answers again.
  func refill() { writer?.refillAll() }

  func close() { writer?.close() }

  private func makeWriter() -> SetWriter {
    let writer = SetWriter(
      on: loop, refill: { [weak self] in self?.refill($0) },
      note: { [logger] in logger.log(level: $0.isProblem ? .error : .info, "\($0)") })
    nonisolated(unsafe) let filler = SetFiller(writer)
    resolver.assumeIsolated { $0.use(filler) }
    self.filler = filler
    self.writer = writer
    return writer
  }

  /// Adds the addresses of cached answers to a set, one walk over the cache after the other.
  private func refill(_ set: FirewallSetName) {
    let isIdle = wanted.isEmpty && !isRefilling
    wanted.insert(set)
    if isIdle { loop.inNextTurn { [weak self] in self?.refillWanted() } }
  }

  private func refillWanted() {
    guard let filler, !wanted.isEmpty else {
      for continuation in waiting { continuation.resume() }
      return waiting = []
    }
    isRefilling = true
    let sets = wanted
    wanted = []
    nonisolated(unsafe) let used = filler
    loop.startTask { [resolver, self] in
      await resolver.console { await $0.refill(sets, by: used) }
      isRefilling = false
      refillWanted()
    }
  }
}
