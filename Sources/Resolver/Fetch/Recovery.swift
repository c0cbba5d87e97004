// Recovery.swift -- fetches names in use again when a provider recovers.

import BusyNames
import EventLoop
import FairShares
import MessageCache
import Refresh
import Upstreams

/// What to fetch again when a provider recovers, and when to act on a recovery. Resolver's loop only.
final class Recovery {
  /// The resolver that has this as a property. Providers know this object and not the resolver: every retain of what was ever
  /// referenced weakly is slow.
  fileprivate unowned var resolver: Resolver?
  /// Fetches whose clients got stale data because of a provider's failure, in order of arrival.
  private(set) var inUse: [Fetch] = []
  private var known: Set<QuestionKey> = []
  /// When a recovery was last acted on.
  private(set) var last = BootInstant(nanoseconds: .min)
  /// The earliest time to act on the next one.
  private(set) var next = BootInstant(nanoseconds: .min)
  let timer = OwnedTimer()

  /// The minimum time between two.
  static let interval = Duration.seconds(10)
  /// Limits the memory; other names are fetched when clients ask for them.
  private static let most = 1024

  /// Notes that the clients of a fetch got stale data.
  func add(_ fetch: Fetch) {
    guard inUse.count < Recovery.most, known.insert(fetch.key).inserted else { return }
    inUse.append(fetch)
  }

  /// Notes that a recovery is acted on now.
  func begin(now: BootInstant) {
    last = now
    next = now + Recovery.interval
  }

  /// Removes and returns the fetches.
  func takeInUse() -> [Fetch] {
    defer { (inUse, known) = ([], []) }
    return inUse
  }

  /// A provider has given the first verdict after a silence.
  fileprivate func providerIsBack() { resolver?.assumeIsolated { $0.providerIsBack() } }

  /// It is time to act on the next recovery.
  fileprivate func isDue() { resolver?.assumeIsolated { $0.recover() } }
}

extension Resolver {
  /// Connects the callbacks of the providers.
  nonisolated func connectUpstreams(
    of configuration: ResolverConfiguration, _ recovery: Recovery, observer names: NameLedger
  ) {
    recovery.resolver = self
    for upstream in configuration.upstreams {
      upstream.follow(by: names) { [weak recovery] in recovery?.providerIsBack() }
    }
  }

  /// A provider has given the first verdict after a silence: names in use are fetched again within the refresh budget.
  fileprivate func providerIsBack() {
    guard !recovery.timer.isSet else { return }
    guard loop.now >= recovery.next else {
      recovery.timer.set(at: recovery.next, on: loop, for: recovery) { $0.isDue() }
      return
    }
    recover()
  }

  fileprivate func recover() {
    recovery.begin(now: loop.now)
    // The names of `refresh.keep` come first.
    refresher?.retryKeepList(isBack: true)
    for fetch in recovery.takeInUse() where fetch.configuration === configuration { fetchAgain(fetch) }
  }

  private func fetchAgain(_ stale: Fetch) {
    let asked = stale.asked
    guard inFlight[asked.key] == nil, !admission.isFull, store.freshAnswer(to: asked, now: loop.now) == nil,
      refresher?.takeFromBudget(
        [asked.routed], configuration.refreshSource(of: asked.routed, after: .unknown, localDNS)
      ).first ?? true
    else { return }
    start(makeRefresh(asked))
  }
}
