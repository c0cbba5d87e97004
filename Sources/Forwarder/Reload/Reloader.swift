// Reloader.swift -- gives a running forwarder another configuration, or says why not.
//
// The file, the hosts file and the tables are read and made on a thread that lives for it. The rest is done on the
// resolver's loop between two turns: sockets, cache and connections stay.

import Configuration
import EventLoop
import Frontend
import Logging
import MessageCache
import Persistence
import Resolver
import Telemetry

/// What has come of a reload.
package struct ReloadReport: Sendable {
  /// Why the configuration stays what it was; empty where it was taken.
  package var mistakes: [String] = []
  /// What was noticed in the file.
  package var warnings: [String] = []
  /// Keys that have changed and need a restart.
  package var fixedKeys: [String] = []
  /// From the look at the file until every listener goes by it.
  package var duration = Duration.zero

  /// A report.
  package init(
    mistakes: [String] = [], warnings: [String] = [], fixedKeys: [String] = [], duration: Duration = .zero
  ) {
    self.mistakes = mistakes
    self.warnings = warnings
    self.fixedKeys = fixedKeys
    self.duration = duration
  }

  fileprivate static let stopping = ReloadReport(mistakes: ["httpdnsd is about to end"])
}

/// Reloads the configuration of a forwarder. Resolver's loop only.
package final class Reloader: @unchecked Sendable {
  /// Called before a reload looks at the file.
  package var willReload: () -> Void = {}
  /// Called when the reload has ended, with what was wrong: nothing where the configuration is another one.
  package var didReload: (_ mistakes: [String]) -> Void = { _ in }
  /// Gets each configuration that is taken, for what is not the forwarder's.
  package var didTake: (Configuration) -> Void = { _ in }

  private let forwarder: Forwarder
  private let path: String
  private let logger: Logger
  private var startedAt = BootInstant.now
  private var isReloading = false
  /// Why everything is rebuilt.
  private enum Reason { case file, network }

  private var reason = Reason.file
  /// Why to begin once more when this one has ended: the file or the network may be another one since it was looked at.
  private var wanted: Reason?
  private var report = ReloadReport()
  /// Who waits for the end of this reload, and of the next one.
  private var waiting: [CheckedContinuation<ReloadReport, Never>] = []
  private var waitingNext: [CheckedContinuation<ReloadReport, Never>] = []
  /// Services whose questions may be under way still.
  private var former: [WeakService] = []
  /// Whether no entry has a number that stands for nothing any more.
  private var isCacheClean = true

  private struct WeakService { weak var service: Service? }

  /// Holds the tables of before until nobody uses them.
  private final class OldTables: @unchecked Sendable {
    private var preparation: Preparation?

    init(_ preparation: Preparation) { self.preparation = preparation }

    func free() { preparation = nil }
  }

  /// How often the network makes the tables follow.
  private var pace = RebuildPace()
  private var networkTimer: LoopTimer?
  /// Whether that was set when there were no resolvers, and is a longer time than need be where there are some.
  private var isBetweenNetworks = false

  /// How often it looks whether every listener goes by the new tables: a thread that is about to wait may miss the signal.
  private static let listenerCheck = Duration.milliseconds(1)
  /// Steps of a revision in one turn of the loop: a millisecond or so, after which queries come first.
  private static let revisionSteps = 64

  /// - Parameter path: the configuration file.
  package init(_ forwarder: Forwarder, path: String, logger: Logger) {
    self.forwarder = forwarder
    self.path = path
    self.logger = logger
    forwarder.searchDomainsHaveChanged = { [weak self] in self?.followNetwork(hasResolvers: $0) }
  }

  /// The network hands out other search domains: the tables follow at once, or some time after they did so last. What it hands
  /// out then counts. Between two networks there is nothing to follow.
  private func followNetwork(hasResolvers: Bool) {
    guard networkTimer == nil || isBetweenNetworks && hasResolvers else { return }
    isBetweenNetworks = !hasResolvers
    networkTimer?.cancel()
    networkTimer = forwarder.loop.schedule(after: pace.delay(at: .now, hasResolvers: hasResolvers)) { [weak self] in
      self?.networkTimer = nil
      self?.begin(.network)
    }
  }

  /// Reads the file and takes what it says: as it is now or later, whatever is under way.
  package func reload() async -> ReloadReport {
    await withCheckedContinuation { continuation in
      waitingNext.append(continuation)
      begin()
    }
  }

  /// Reads the file and takes what it says. Returns at once; of several calls during a reload one more comes.
  package func begin() { begin(.file) }

  /// Rebuilds everything: by the file, or by the running configuration, because what it stands for is another one.
  private func begin(_ reason: Reason) {
    guard !isReloading else {
      // A look at the file is a look at the network as well.
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
    Errand.start("reload") { [self] in
      let reading =
        reason == .file
        ? Reading(path, numbers, surroundings, after: earlier) : Reading(numbers, surroundings, after: earlier)
      loop.execute { [self] in take(reading) }
    }
  }

  private func take(_ reading: Reading) {
    for warning in reading.warnings { logger.warning("\(warning)") }
    report.warnings = reading.warnings
    guard !forwarder.isStopping else { return abandon() }
    do throws(StartError) {
      guard let preparation = reading.preparation else { return refuse(reading.mistakes) }
      guard reason == .file else { return takeNetwork(of: preparation) }
      let providers = try forwarder.providers(for: preparation.configuration)
      didTake(preparation.configuration)
      report.fixedKeys = reading.fixedKeys
      if !reading.fixedKeys.isEmpty {
        logger.warning("\(path): needs a restart to change: \(reading.fixedKeys.joined(separator: ", "))")
      }
      let terms = RevisedTerms(from: forwarder.preparation, to: preparation)
      former.append(WeakService(service: forwarder.resolver.assumeIsolated { $0.service }))
      let old = OldTables(forwarder.preparation)
      forwarder.use(preparation, providers)
      finish(terms, old)
    } catch { refuse(["\(error)"]) }
  }

  /// The same configuration on another network: only the tables are others. Questions that wait, failures and denials that are
  /// remembered stay, or a network that changes its mind would cost transfers.
  private func takeNetwork(of preparation: Preparation) {
    guard preparation.plan.searchDomains != forwarder.preparation.plan.searchDomains else { return end([]) }
    pace.begins(at: .now)
    let terms = RevisedTerms(from: forwarder.preparation, to: preparation)
    let old = OldTables(forwarder.preparation)
    forwarder.use(tablesOf: preparation)
    finish(terms, old)
  }

  private func refuse(_ reasons: [String]) {
    switch reason {
    case .file:
      for line in reasons { logger.error("\(line)") }
      logger.error("configuration unchanged")
    case .network:
      pace.begins(at: .now)
      let text = "search domains are not taken over, and tried again: \(reasons.joined(separator: "; "))"
      forwarder.occasional.log(.error, reason: "search domains", now: BootInstant.now.nanoseconds, text)
      // The network will not say it again.
      followNetwork(hasResolvers: true)
    }
    end(reasons)
  }

  /// Waits for the listeners; from then on nobody asks by the old tables, and what they have left in the cache is seen to.
  private func finish(_ terms: RevisedTerms?, _ old: OldTables) {
    guard forwarder.listenerThreads.allSatisfy({ $0.hasTakenTables() }) else {
      forwarder.loop.schedule(after: Reloader.listenerCheck) { [self] in finish(terms, old) }
      return
    }
    forwarder.resolver.assumeIsolated { $0.forgetEarlier() }
    // Those of a large hosts file take milliseconds.
    Errand.start("old tables") { old.free() }
    let isStill = !(forwarder.upkeep?.isMovingCache ?? false)
    let loop = forwarder.loop
    Task(executorPreference: loop) { [self] in
      if let terms { await revise(terms) }
      if terms != nil || !isStill { isCacheClean = isStill }
      report.duration = .now - startedAt
      let milliseconds = report.duration.nanoseconds / 1_000_000
      logger.info("\(reason == .file ? "configuration reloaded" : "search domains taken over") in \(milliseconds) ms")
      end([])
    }
  }

  private func revise(_ terms: RevisedTerms) async {
    var revision = CacheRevision(of: forwarder.surroundings.cache, terms)
    revision.advance(steps: Reloader.revisionSteps)
    while !revision.isDone {
      await forwarder.loop.sleep(for: .zero)
      revision.advance(steps: Reloader.revisionSteps)
    }
    guard revision.removed > 0 else { return }
    let (what, have) = revision.removed == 1 ? ("entry", "has") : ("entries", "have")
    logger.debug("cache: \(revision.removed) \(what) of rules that are no more \(have) gone")
  }

  private func end(_ mistakes: [String]) {
    isReloading = false
    if reason == .file {
      didReload(mistakes)
      report.mistakes = mistakes
      tell(report)
    }
    guard let next = wanted else { return }
    wanted = nil
    begin(next)
  }

  private func tell(_ report: ReloadReport) {
    for continuation in waiting { continuation.resume(returning: report) }
    waiting = []
  }

  /// The program ends: nothing is taken any more.
  private func abandon() {
    isReloading = false
    waiting += waitingNext
    waitingNext = []
    tell(.stopping)
  }

  /// The numbers that count, of which those may be used again that nothing carries any more: no entry, no question.
  private func freeNumbers() -> ServiceNumbers {
    var numbers = forwarder.preparation.numbers
    former.removeAll { $0.service == nil }
    guard former.isEmpty, isCacheClean else { return numbers }
    numbers.routes.release(numbers.routes.retired)
    numbers.providers.release(numbers.providers.retired)
    return numbers
  }
}

/// How often a network may have the tables rebuilt by changing its mind: each time costs the listeners a moment.
struct RebuildPace {
  private var last: BootInstant?

  static let pause = Duration.seconds(10)

  /// How long to wait now. A machine without resolvers has left one network and is not on another one yet: to follow that would
  /// put off the next one.
  func delay(at now: BootInstant, hasResolvers: Bool = true) -> Duration {
    guard hasResolvers else { return RebuildPace.pause }
    return last.map { max(.zero, $0 + RebuildPace.pause - now) } ?? .zero
  }

  /// They are rebuilt.
  mutating func begins(at now: BootInstant) { last = now }
}

/// What a configuration file says at the time, and what is made of it. Any thread.
private struct Reading: Sendable {
  var warnings: [String] = []
  var mistakes: [String] = []
  /// Keys that have changed and cannot.
  var fixedKeys: [String] = []
  /// Nil where there are mistakes.
  var preparation: Preparation?

  /// Blocks: reads files.
  ///
  /// A hosts file that could not be read before need not be readable: nothing of it can be lost.
  init(
    _ path: String, _ numbers: ServiceNumbers, _ surroundings: Preparation.Surroundings, after earlier: Preparation
  ) {
    do throws(Mistakes) {
      let loaded = try Configuration.load(path: path)
      warnings = loaded.warnings.map(\.description)
      var configuration = loaded.configuration
      fixedKeys = configuration.keepFixed(of: earlier.configuration)
      do throws(StartError) {
        preparation = try Preparation(
          configuration, numbers, surroundings, needsHosts: configuration.names.hostsFile != earlier.missingHosts)
      } catch { mistakes = [error.description] }
    } catch {
      warnings = error.warnings.map(\.description)
      mistakes = error.mistakes.map(\.description)
    }
  }

  /// The running configuration on another network, with the hosts file as it was. Blocks: reads that again where it is large.
  init(_ numbers: ServiceNumbers, _ surroundings: Preparation.Surroundings, after earlier: Preparation) {
    do throws(StartError) {
      preparation = try Preparation(earlier.configuration, numbers, surroundings, hostsOf: earlier)
    } catch { mistakes = [error.description] }
  }
}

extension RevisedTerms {
  /// What entries that were kept under one configuration have to be under the next; nil where nothing is to be done.
  init?(from old: Preparation, to new: Preparation) {
    let (before, now) = (old.plan.routes, new.plan.routes)
    let filter = new.configuration.names
    let isStricter =
      filter.rebindProtection
      && (!old.configuration.names.rebindProtection || filter.rebindAllow != old.configuration.names.rebindAllow
        || filter.rebindPrefixes != old.configuration.names.rebindPrefixes)
    let terms = now.map { route in
      route.isUnused || isStricter && route.filtersPrivate ? nil : EntryTerms(route)
    }
    let lost = new.numbers.providers.retired
    let isAlike = before.enumerated().allSatisfy { number, route in
      route.isUnused || number < terms.count && terms[number] == EntryTerms(route)
    }
    guard !isAlike || !lost.isEmpty || !new.numbers.routes.retired.isEmpty else { return nil }
    self.init(routes: terms, lostSources: Set(lost.map { EntrySource.provider($0).number }).subtracting([0]))
  }
}

extension EntryTerms {
  /// The terms of a route.
  init(_ route: Route) {
    self.init(
      longest: route.ttl.highest, longestNegative: route.ttl.highestNegative,
      staleFor: route.stale.mode == .off ? 0 : route.stale.maxAge,
      isServedStale: route.stale.mode == .immediate || route.stale.isImmutable, isImmutable: route.stale.isImmutable,
      substitute: route.providers.isEmpty ? nil : EntrySource.localDNS.number)
  }
}
