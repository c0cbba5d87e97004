// Reloader.swift -- gives a running forwarder another configuration, or reports why not.
//
// A temporary thread reads the file and the hosts file and makes the tables. The rest runs on the resolver's loop
// between two turns: sockets, cache and connections stay.

import Configuration
import EventLoop
import Frontend
import ListStore
import Logging
import MessageCache
import Persistence
import Resolver
import Synchronization
import Telemetry

/// The result of a reload.
package struct ReloadReport: Sendable {
  /// Why the configuration is unchanged; empty if the new one was taken.
  package var mistakes: [String] = []
  /// Warnings about the file.
  package var warnings: [String] = []
  /// Keys that have changed and need a restart.
  package var fixedKeys: [String] = []
  /// Time from the start of the reload until every listener uses the new tables.
  package var duration = Duration.zero

  fileprivate static let stopping = ReloadReport(mistakes: ["httpdnsd is shutting down"])
}

/// Reloads the configuration of a forwarder. Resolver's loop only.
package final class Reloader {
  /// Called before a reload reads the file.
  package var willReload: () -> Void = {}
  /// Called when a reload has ended; `mistakes` is empty if the new configuration was taken.
  package var didReload: (_ mistakes: [String]) -> Void = { _ in }
  /// Receives each configuration that is taken, for components outside the forwarder.
  package var didTake: (Configuration) -> Void = { _ in }

  private let forwarder: Forwarder
  private let path: String
  private let logger: Logger
  private var startedAt = BootInstant.now
  private var isReloading = false
  /// What triggers a rebuild.
  private enum Reason {
    case file
    /// The network or a list.
    case surroundings
  }

  private var reason = Reason.file
  /// The trigger of one more rebuild after this one: the file or the network may have changed since it was read.
  private var wanted: Reason?
  /// What the log says when the tables are in use.
  private var outcome: (level: Logger.Level, text: String) = (.info, "")
  private var report = ReloadReport()
  /// Callers that wait for the end of this reload, and of the next one.
  private var waiting: [CheckedContinuation<ReloadReport, Never>] = []
  private var waitingNext: [CheckedContinuation<ReloadReport, Never>] = []
  /// Services whose questions may still be in flight.
  private var former: [WeakConfiguration] = []
  /// Whether no cache entry carries a number that no longer has a meaning.
  private var isCacheClean = true

  private struct WeakConfiguration { weak var configuration: ResolverConfiguration? }

  /// Holds the previous tables until nothing uses them.
  private final class OldTables: Sendable {
    private let preparation: Mutex<Preparation?>

    init(_ preparation: Preparation) { self.preparation = Mutex(preparation) }

    func free() { preparation.withLock { $0 = nil } }
  }

  /// Limits how often the network has the tables rebuilt.
  private var pace = RebuildPace()
  private let networkTimer = OwnedTimer()
  private let listenerTimer = OwnedTimer()
  /// Whether the timer was set without resolvers, and is longer than necessary once there are some.
  private var isBetweenNetworks = false

  /// How often it checks whether every listener uses the new tables: a thread about to wait may miss the signal.
  private static let listenerCheck = Duration.milliseconds(1)

  /// - Parameter path: the configuration file.
  package init(_ forwarder: Forwarder, path: String, logger: Logger) {
    self.forwarder = forwarder
    self.path = path
    self.logger = logger
    forwarder.tablesAreOutdated = { [weak self] in self?.followNetwork(hasResolvers: $0) }
    forwarder.ruleParts.listsHaveChanged = { [weak self] in self?.begin(.surroundings) }
  }

  /// The network provides other search domains or prefixes: the tables follow at once, or after a pause since the last
  /// time, and use those of that moment. Between two networks there is nothing to follow.
  private func followNetwork(hasResolvers: Bool) {
    guard !networkTimer.isSet || isBetweenNetworks && hasResolvers else { return }
    isBetweenNetworks = !hasResolvers
    networkTimer.set(after: pace.delay(at: .now, hasResolvers: hasResolvers), on: forwarder.loop) { [weak self] in
      self?.begin(.surroundings)
    }
  }

  /// Reloads the file and waits for the result. Reads the file after this call, even if a reload is in progress.
  package func reload() async -> ReloadReport {
    forwarder.loop.assertCurrent()
    return await withCheckedContinuation { continuation in
      waitingNext.append(continuation)
      begin()
    }
  }

  /// Reloads the file. Returns at once; several calls during a reload cause one more.
  package func begin() { begin(.file) }

  /// Rebuilds everything: from the file, or from the running configuration because the network or a list has changed.
  private func begin(_ reason: Reason) {
    forwarder.loop.assertCurrent()
    guard !isReloading else {
      // A reload of the file includes the network and the lists.
      if wanted != .file { wanted = reason }
      return
    }
    guard !forwarder.isStopping else { return abandon() }
    isReloading = true
    self.reason = reason
    if reason == .file { (waiting, waitingNext) = (waitingNext, []) }
    report = ReloadReport()
    startedAt = .now
    if reason == .file { willReload() }
    let numbers = freeNumbers()
    let (path, surroundings, loop) = (path, forwarder.surroundings, forwarder.loop)
    let earlier = forwarder.preparation
    let texts = forwarder.ruleParts.lists.texts
    let (files, wallTime) = (forwarder.clients.encrypted?.files, loop.wallTime)
    loop.startTask { [self] in
      take(
        reason == .file
          ? await BlockingTask.value("reload", on: loop) {
            Reading(path, numbers, surroundings, texts, files, at: wallTime, after: earlier)
          }
          : await inBackground("reload", on: loop) { Reading(numbers, surroundings, texts, after: earlier) })
    }
  }

  private func take(_ reading: Reading) {
    for warning in reading.warnings { logger.warning("\(warning)") }
    // The encrypted listeners log theirs.
    report.warnings = reading.warnings + (reading.renewal?.faults.lines ?? [])
    guard !forwarder.isStopping else { return abandon() }
    do throws(StartError) {
      guard let preparation = reading.preparation else { return refuse(reading.mistakes) }
      guard reason == .file else { return takeSurroundings(of: preparation) }
      let providers = try forwarder.providers(for: preparation.configuration)
      didTake(preparation.configuration)
      report.fixedKeys = reading.fixedKeys
      if !reading.fixedKeys.isEmpty {
        logger.warning("\(path): needs a restart to change: \(reading.fixedKeys.joined(separator: ", "))")
      }
      let terms = RevisedTerms(from: forwarder.preparation, to: preparation)
      former.append(WeakConfiguration(configuration: forwarder.resolver.assumeIsolated { $0.configuration }))
      let old = OldTables(forwarder.preparation)
      outcome = (.info, "configuration reloaded")
      forwarder.use(preparation, providers, reading.renewal)
      finish(terms, old)
    } catch { refuse(["\(error)"]) }
  }

  /// Takes the same configuration for another network, or with other lists: only the tables change. Waiting questions,
  /// remembered failures and negative answers stay: otherwise a network that changes often would cost transfers.
  private func takeSurroundings(of preparation: Preparation) {
    let (access, previous) = (preparation.tables.access.allowed, forwarder.preparation.tables.access.allowed)
    let isOther = access != previous || preparation.plan.searchDomains != forwarder.preparation.plan.searchDomains
    guard isOther || preparation.plan.lists.table !== forwarder.preparation.plan.lists.table else {
      forwarder.ruleParts.listsAreLoaded(preparation.plan.lists)
      return end([])
    }
    // The store of the lists says itself what has changed in them.
    outcome = isOther ? (.info, "search domains updated") : (.debug, "lists updated")
    if access != previous {
      outcome.text = "listen.allow updated"
      let (added, removed) = (access.subtracting(previous), previous.subtracting(access))
      let texts = added.map { "+\($0)" }.sorted() + removed.map { "-\($0)" }.sorted()
      logger.info("listen.allow: the connected networks have changed: \(texts.joined(separator: ", "))")
    }
    if isOther { pace.begins(at: .now) }
    let terms = RevisedTerms(from: forwarder.preparation, to: preparation)
    let old = OldTables(forwarder.preparation)
    forwarder.use(tablesOf: preparation)
    finish(terms, old)
  }

  private func refuse(_ reasons: [String]) {
    let lists = forwarder.ruleParts.lists
    switch reason {
    case .file:
      // The reload may have taken the place of a build for lists that have changed: it is asked for again.
      lists.loaded([:], of: ListTexts(), in: .zero)
      for line in reasons { logger.error("\(line)") }
      logger.error("configuration unchanged")
    case .surroundings:
      lists.notBuilt(.failed("no table could be built: \(reasons.joined(separator: "; "))"))
      pace.begins(at: .now)
      let text = "the tables are not updated, and will be built again: \(reasons.joined(separator: "; "))"
      forwarder.occasional.log(.error, reason: "network tables", now: BootInstant.now.nanoseconds, text)
      // The network does not report it again.
      followNetwork(hasResolvers: true)
    }
    end(reasons)
  }

  /// Waits until no listener uses the old tables, then revises the entries that were cached under them.
  private func finish(_ terms: RevisedTerms?, _ old: OldTables) {
    guard forwarder.clients.hasTakenTables() else {
      listenerTimer.set(after: Reloader.listenerCheck, on: forwarder.loop) { [self] in finish(terms, old) }
      return
    }
    forwarder.resolver.assumeIsolated { $0.forgetEarlier() }
    // To free the tables of a large hosts file takes milliseconds.
    BlockingTask.start("old tables") { old.free() }
    let isStill = !(forwarder.backgroundWork?.isMovingCache ?? false)
    forwarder.loop.startTask { [self] in
      if let terms { await revise(terms) }
      if terms != nil || !isStill { isCacheClean = isStill }
      report.duration = .now - startedAt
      let milliseconds = report.duration.nanoseconds / 1_000_000
      logger.log(level: outcome.level, "\(outcome.text) in \(milliseconds) ms")
      end([])
    }
  }

  private func revise(_ terms: RevisedTerms) async {
    var revision = CacheRevision(of: forwarder.surroundings.cache, terms)
    await forwarder.loop.inPortions {
      revision.advance()
      return revision.isDone
    }
    guard revision.removed > 0 else { return }
    logger.debug("cache: dropped \(revision.removed) \(revision.removed == 1 ? "entry" : "entries") of removed rules")
  }

  private func end(_ mistakes: [String]) {
    isReloading = false
    if reason == .file {
      didReload(mistakes)
      report.mistakes = mistakes
      answerWaiting(report)
    }
    guard let next = wanted else { return }
    wanted = nil
    begin(next)
  }

  /// Hands the report to the callers that wait for this reload.
  private func answerWaiting(_ report: ReloadReport) {
    for continuation in waiting { continuation.resume(returning: report) }
    waiting = []
  }

  /// The daemon is stopping: ends the waiting reloads without taking anything.
  private func abandon() {
    isReloading = false
    waiting += waitingNext
    waitingNext = []
    answerWaiting(.stopping)
  }

  /// The numbers in use. Retired ones become available again if nothing carries them: no entry, no question.
  private func freeNumbers() -> ServiceNumbers {
    var numbers = forwarder.preparation.numbers
    former.removeAll { $0.configuration == nil }
    guard former.isEmpty, isCacheClean else { return numbers }
    numbers.routes.release(numbers.routes.retired)
    numbers.providers.release(numbers.providers.retired)
    return numbers
  }
}

/// Limits how often a changing network may have the tables rebuilt: each time costs the listeners a moment.
struct RebuildPace {
  private var last: BootInstant?

  static let pause = Duration.seconds(10)

  /// The delay before the next rebuild. A machine without resolvers has left one network and is not on another one yet:
  /// to follow that would delay the next one.
  func delay(at now: BootInstant, hasResolvers: Bool = true) -> Duration {
    guard hasResolvers else { return RebuildPace.pause }
    return last.map { max(.zero, $0 + RebuildPace.pause - now) } ?? .zero
  }

  /// Notes the start of a rebuild.
  mutating func begins(at now: BootInstant) { last = now }
}

/// The configuration file as read, and what is made from it. Any thread.
private struct Reading: Sendable {
  var warnings: [String] = []
  var mistakes: [String] = []
  /// Changed keys that need a restart.
  var fixedKeys: [String] = []
  /// Nil if there are mistakes.
  var preparation: Preparation?
  /// The files of the encrypted listeners; nil if they were not read.
  var renewal: EncryptedFiles.Renewal?

  /// Reads the configuration file, the hosts file and the files of the encrypted listeners. Blocks.
  ///
  /// A hosts file that was already unreadable is not a mistake: there is nothing of it to lose.
  ///
  /// - Parameters:
  ///   - files: those in use; nil without encrypted listeners.
  ///   - wallTime: seconds since 1970.
  init(
    _ path: String, _ numbers: ServiceNumbers, _ surroundings: Preparation.Surroundings, _ texts: ListTexts,
    _ files: EncryptedFiles?, at wallTime: Int64, after earlier: Preparation
  ) {
    do throws(Mistakes) {
      let loaded = try Configuration.load(path: path)
      warnings = loaded.warnings.map(\.description)
      var configuration = loaded.configuration
      fixedKeys = configuration.keepFixed(of: earlier.configuration)
      renewal = files?.renewed(configuration.encrypted, at: wallTime)
      do throws(StartError) {
        preparation = try Preparation(
          configuration, numbers, surroundings, lists: (texts, earlier.plan.lists),
          needsHosts: configuration.names.hostsFile != earlier.missingHosts)
      } catch { mistakes = [error.description] }
    } catch {
      warnings = error.warnings.map(\.description)
      mistakes = error.mistakes.map(\.description)
    }
  }

  /// Rebuilds the running configuration for another network or with other lists, with the same hosts file. Blocks: reads a
  /// large one again.
  init(
    _ numbers: ServiceNumbers, _ surroundings: Preparation.Surroundings, _ texts: ListTexts, after earlier: Preparation
  ) {
    do throws(StartError) {
      preparation = try Preparation(earlier.configuration, numbers, surroundings, hostsOf: earlier, lists: texts)
    } catch { mistakes = [error.description] }
  }
}

extension RevisedTerms {
  /// How entries cached under one configuration must change for the next; nil if nothing changes.
  init?(from old: Preparation, to new: Preparation) {
    let (before, now) = (old.plan.routes, new.plan.routes)
    let filter = new.configuration.names
    let isStricter =
      filter.rebindProtection
      && (!old.configuration.names.rebindProtection || filter.rebindAllow != old.configuration.names.rebindAllow
        || filter.rebindPrefixes != old.configuration.names.rebindPrefixes)
    let terms = now.map { route in route.isUnused || isStricter && route.filtersPrivate ? nil : EntryTerms(route) }
    let lost = new.numbers.providers.retired
    let isAlike = before.enumerated().allSatisfy { number, route in
      route.isUnused || number < terms.count && terms[number] == EntryTerms(route)
    }
    guard !isAlike || !lost.isEmpty || !new.numbers.routes.retired.isEmpty else { return nil }
    self.init(routes: terms, lostSources: Set(lost.map { EntrySource.provider($0).number }).subtracting([0]))
  }
}

extension EntryTerms {
  init(_ route: Route) {
    self.init(
      longest: route.ttl.highest, longestNegative: route.ttl.highestNegative,
      staleFor: route.stale.mode == .off ? 0 : route.stale.maxAge,
      isServedStale: route.stale.mode == .immediate || route.stale.isImmutable, isImmutable: route.stale.isImmutable,
      substitute: route.providers.isEmpty ? nil : EntrySource.localDNS.number)
  }
}
