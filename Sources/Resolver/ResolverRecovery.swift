// ResolverRecovery.swift -- a provider is back: what its failure has left behind ends for all names.

import DNSWire
import EventLoop
import FairShares
import HTTPDNS
import MessageCache
import Upstreams

/// What a provider's return sets going.
struct Recovery {
  /// Questions whose clients get stale data for want of a provider, in the order in which they came.
  private(set) var inUse: [Pursuit] = []
  private var known: Set<QuestionKey> = []
  /// When a return last counted.
  private(set) var last = BootInstant(nanoseconds: .min)
  /// Not again before that.
  private(set) var next = BootInstant(nanoseconds: .min)
  var timer: LoopTimer?

  /// How often a return counts, at most.
  static let interval = Duration.seconds(10)
  /// A bound on memory; names beyond it are asked for again as clients ask.
  private static let most = 1024

  /// The clients of a question get stale data.
  mutating func add(_ pursuit: Pursuit) {
    guard inUse.count < Recovery.most, known.insert(pursuit.key).inserted else { return }
    inUse.append(pursuit)
  }

  /// A return counts.
  mutating func begin(now: BootInstant) {
    last = now
    next = now + Recovery.interval
  }

  /// Forgets them all.
  mutating func takeInUse() -> [Pursuit] {
    defer { (inUse, known) = ([], []) }
    return inUse
  }
}

extension Resolver {
  /// Everything that the providers tell by themselves.
  nonisolated func connectUpstreams(of service: Service) {
    for upstream in service.upstreams {
      upstream.observer = names
      upstream.follow(keptNames: service.settings.keptNames)
      upstream.tellRecovery { [weak self] in self?.assumeIsolated { $0.providerIsBack() } }
    }
  }

  /// The clients of a question get stale data because of a provider.
  func awaitsRecovery(_ pursuit: Pursuit) {
    if pursuit.service === service { recovery.add(pursuit) }
  }

  /// Whether a failure makes its question wait. One that began before a provider was back, and was lost all the same, says
  /// nothing about now: its wait would begin when all others are over.
  func isRemembered(_ reason: UpstreamFailure, of pursuit: Pursuit) -> Bool {
    guard reason.blame.isRemembered, pursuit.service === service else { return false }
    return !reason.blame.endsWithRecovery || pursuit.startedAt > recovery.last
  }

  /// A provider has answered after it had failed. Waits that were its fault, its account's or the network's are over, and
  /// names in use are fetched again as far as the refresh budget allows; what was the answer's own fault stays.
  private func providerIsBack() {
    guard recovery.timer == nil else { return }
    guard loop.now >= recovery.next else {
      recovery.timer = loop.schedule(at: recovery.next) { [weak self] in self?.assumeIsolated { $0.recover() } }
      return
    }
    recover()
  }

  private func recover() {
    recovery.timer = nil
    recovery.begin(now: loop.now)
    failures.endWaitsForProviders()
    // Kept names come first.
    refresher?.retryKept(isBack: true)
    for pursuit in recovery.takeInUse() where pursuit.service === service { fetchAgain(pursuit) }
  }

  private func fetchAgain(_ stale: Pursuit) {
    let (question, key) = (stale.question, stale.key)
    guard inFlight[key] == nil, !places.isFull, kept(question, key, stale.route, stale.subnet) == nil,
      refresher?.takeFromBudget(
        [RoutedQuestion(question: question, route: stale.route.number)],
        refreshSource(question, stale.route.number, after: .nobody)
      ).first ?? true
    else { return }
    let pursuit = makePursuit(question, key, service, stale.route, stale.subnet)
    pursuit.isRefresh = true
    start(pursuit)
  }
}
