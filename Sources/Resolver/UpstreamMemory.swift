// UpstreamMemory.swift -- what earlier questions have shown of the upstreams.
//
// Resolver's loop only. Failures under another configuration, or before an upstream's recovery, say nothing. When LocalDNS
// gave verdicts outlives a reload.

import Configuration
import DNSWire
import EventLoop
import FairShares
import Upstreams

/// The questions that upstreams gave no verdict on, and when LocalDNS gave its verdicts. Providers
/// keep their own times (`Upstream.pace`).
final class UpstreamMemory {
  private var failures: FailureCache
  private var localPatience = Patience()
  private var configuration: ResolverConfiguration

  init(_ configuration: ResolverConfiguration) {
    self.configuration = configuration
    failures = FailureCache(longestWait: configuration.settings.cache.maxFailureTTL)
  }

  func use(_ configuration: ResolverConfiguration) {
    self.configuration = configuration
    failures = FailureCache(longestWait: configuration.settings.cache.maxFailureTTL)
  }

  func networkHasChanged(now: BootInstant) {
    failures.removeAll()
    localPatience.networkHasChanged(now: now)
  }

  // MARK: Failures

  /// Why an upstream is not asked a question yet, since it gave no verdict a moment ago; nil if it may be asked.
  ///
  /// - Parameters:
  ///   - upstream: its place in the configuration, or `FailureCache.localDNS`.
  ///   - takesTrial: whether a trial counts as asked.
  func reasonNotToAsk(
    _ asked: ResolverQuestion, at upstream: Int, _ domain: DomainKey, takesTrial: Bool = true, now: BootInstant
  ) -> UpstreamFailure? {
    guard !failures.isEmpty, asked.configuration === configuration else { return nil }
    var reason = failures.failure(
      of: asked.key, at: upstream, domain, verdicts(of: upstream), takesTrial: takesTrial, now: now)
    reason?.steps = []
    return reason
  }

  /// The failure of the first upstream, if none may be asked since all gave no verdict a moment ago; nil if one may be asked.
  ///
  /// - Parameter mayAskLocal: whether LocalDNS may answer if no provider did, or is the only upstream.
  func failureBefore(
    _ asked: ResolverQuestion, _ domain: DomainKey, mayAskLocal: @autoclosure () -> Bool, now: BootInstant
  ) -> UpstreamFailure? {
    guard !failures.isEmpty else { return nil }
    var mayAskLocal = mayAskLocal()
    var first: UpstreamFailure?
    for index in asked.route.providers where asked.configuration.upstreams[index].serves(asked.question) {
      guard let reason = reasonNotToAsk(asked, at: index, domain, takesTrial: false, now: now) else { return nil }
      mayAskLocal = mayAskLocal && reason.consequence.leadsToLocalDNS
      first = first ?? reason
    }
    if mayAskLocal {
      let local = reasonNotToAsk(asked, at: FailureCache.localDNS, domain, takesTrial: false, now: now)
      guard let local else { return nil }
      first = first ?? local
    }
    return first.map { .remembered($0) }
  }

  private func verdicts(of upstream: Int) -> VerdictTimes {
    upstream == FailureCache.localDNS ? localPatience.verdicts : configuration.upstreams[upstream].pace.verdicts
  }

  // MARK: What upstreams say

  /// An upstream gave no verdict on a question that was sent at `sentAt`.
  func failed(
    _ reason: UpstreamFailure, _ asked: ResolverQuestion, at upstream: Int, sentAt: BootInstant, now: BootInstant
  ) {
    guard reason.consequence.isRemembered, asked.configuration === configuration else { return }
    let verdicts = verdicts(of: upstream)
    guard sentAt > verdicts.recoveredAt else { return }
    failures.failed(asked.key, at: upstream, reason, verdicts, now: now)
  }

  func succeeded(_ asked: ResolverQuestion, at upstream: Int) { failures.succeeded(asked.key, at: upstream) }

  func sentToLocalDNS(_ fetch: Fetch, now: BootInstant) { localPatience.sent(fetch.domain, askedAt: now) }

  func localDNSGaveVerdict(_ fetch: Fetch, after time: Duration, now: BootInstant) {
    _ = localPatience.gaveVerdict(on: fetch.domain, of: fetch.client, after: time, wasAway: false, now: now)
  }

  // MARK: For the operator

  /// The number of failures, including expired ones; for tests.
  var count: Int { failures.count }

  /// Removes the failures of the selected names; returns their number.
  func remove(_ names: NameSelection) -> Int { failures.remove(names) }

  /// The questions of the selected names that an upstream is not asked yet, the latest failure first.
  func waiting(
    _ names: NameSelection, now: BootInstant
  ) -> [(key: [UInt8], upstream: Int, until: BootInstant, reason: UpstreamFailure)] {
    failures.waiting(names, now: now)
  }
}
