// FetchEnd.swift -- how a question in flight ends: its answer is stored, and all its clients get it.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import FairShares
import Frontend
import HTTPDNS
import MessageCache
import Ranking
import Refresh
import Upstreams

extension Resolver {
  /// Answers all clients with what is available: the daemon is stopping.
  package func giveUp() {
    // Answers that wait for the firewall wait no longer.
    store.sets?.close()
    ranker?.close()
    ranker = nil
    for fetch in inFlight.values where !fetch.state.isAnswered { finish(fetch, fetch.state.held ?? .failure(.ending)) }
  }

  /// Ends a fetch with a result: at once, or when the firewall sets of its route have what its clients get. In that time it
  /// counts as answered, so nothing else is asked for it, and other clients join it.
  func deliver(_ fetch: Fetch, _ result: FetchResult) {
    guard fetch.route.sets != nil, fetch.isAwaited, !fetch.state.isAnswered, let sets = store.sets else {
      return finish(fetch, result)
    }
    _ = fetch.state.markAnswered(isAnswer: result.answer != nil)
    fetch.timer.cancel()
    nonisolated(unsafe) let ended = fetch
    sets.add(result.answer ?? store.staleAnswer(to: fetch.asked, now: loop.now), to: fetch.asked) { [self] in
      assumeIsolated { $0.finish(ended, result, isFirst: true) }
    }
  }

  /// Stores the answer and gives it to all clients. An answer that arrives after that is only stored, or ignored
  /// if it is LocalDNS's and a better one is known.
  ///
  /// - Parameter isFirst: whether its clients have no result yet, although it counts as answered.
  private func finish(_ fetch: Fetch, _ result: FetchResult, isFirst: Bool = false) {
    let wasAnswered = fetch.state.isAnswered && !isFirst
    // LocalDNS's answer from before a sleep is as old as that.
    let isOld = result.source.isLocalDNS && loop.now - fetch.state.end > Fetch.longestDelay
    var result = isOld ? .failure(.noAnswerInTime) : result
    var given = result.result
    switch result.result {
    case .success(var answer):
      // Without a scope it is for the client's subnet alone, which a cache between has to know (RFC 7871 section 7.3).
      answer.scope = answer.scope ?? fetch.asked.subnetScope
      // LocalDNS's late answer does not replace a provider's.
      let isLateLocal = wasAnswered && result.source.isLocalDNS
      if isLateLocal, fetch.state.excludesLateLocal || store.hasFreshAnswer(to: fetch.asked, now: loop.now) { return }
      if result.source.isLocalDNS, fetch.isQueued || fetch.hasWaitedInVain {
        // The client's other questions use the connections. The answer is given, but not cached for others, since the
        // provider may have a better one.
        given = .success(composer.ofExistingName(answer, fetch.asked))
      } else {
        let arranged = insert(answer, to: fetch.asked, fetch.origin(result.source, isInSets: isFirst))
        if arranged.lifetime == 0 || !settings.cache.isEnabled, fetch.epoch == cache.epoch {
          recent.add(arranged, to: fetch.key, askedAt: fetch.state.lastAttempt, now: loop.now)
        }
        given = .success(arranged)
      }
      result.result = given
    case .failure(let reason):
      guard !wasAnswered else {
        if result.source.isProvider, reason.consequence == .verdict {
          _ = store.removeLocalAnswers(to: fetch.asked, now: loop.now)
        }
        return
      }
      if fetch.state.isRefresh { goOnServingStale(fetch, reason) } else { given = afterFailure(fetch, reason) }
    }
    guard isFirst || fetch.state.markAnswered(isAnswer: result.answer != nil) else { return }
    fetch.timer.cancel()
    // What is left to do for it says whether the provider is back, and no client waits for it.
    if fetch.isImpatient, admission.release(fetch) { fetch.isLate() }
    if inFlight[fetch.key] === fetch { inFlight[fetch.key] = nil }
    replies.send(given, to: fetch.slots, of: fetch.domain, from: result.source, admission, on: loop)
    fetch.slots = []
    guard !fetch.continuations.isEmpty else { return }
    var resolved = ResolvedAnswer(result)
    resolved.trail = fetch.trail
    for continuation in fetch.continuations { continuation.resume(returning: resolved) }
    fetch.continuations = []
  }

  /// Takes the place from a fetch. Its clients get what is available now, except LocalDNS's held
  /// answer, since a provider may have a better one; an answer that still arrives is cached.
  func displace(_ fetch: Fetch) {
    guard admission.displace(fetch) else { return }
    let result = fetch.state.displace()
    fetch.isLate()
    tally.shares.displaced += 1
    guard !fetch.state.isAnswered else { return }
    let isStale = store.find(fetch.asked, now: loop.now) != nil
    tally.shares.add(.places, stale: isStale, queries: fetch.slots.count)
    onLimit(.share(.places))
    deliver(fetch, result)
  }

  /// Puts the addresses of an answer in order, stores it and schedules its refresh.
  ///
  /// - Returns: the answer as clients get it.
  @discardableResult
  func insert(_ answer: FinishedAnswer, to asked: ResolverQuestion, _ origin: EntryOrigin) -> FinishedAnswer {
    if !origin.isInSets { store.sets?.add(answer, to: asked) }
    guard !answer.isTruncated else { return answer }
    var answer = composer.ofExistingName(answer, asked)
    let question = asked.question
    let hidden = ranker?.arrange(
      &answer.response, to: question.name, hash: asked.key.keyedHash,
      isPlain: !question.dnssecOK && !answer.response.isAuthenticated)
    guard let stored = store.insert(answer, to: asked, origin, now: loop.now) else { return answer }
    refresher?.schedule(asked.key.keyedHash, stored.life, isNXDOMAIN: stored.isNXDOMAIN, storedAt: stored.storedAt)
    guard let ranker, ranker.measures else { return answer }
    let hasSeveral = answer.response.rotation.size > 0 || hidden?.all != nil
    guard hasSeveral || ranker.comparesFamilies || ranker.measures(stored.hash) else { return answer }
    ranker.stored(
      question.name, question.type, hash: stored.hash, isKept: refresher?.isOnKeepList(question) ?? false,
      for: origin.client, hiding: hidden)
    return answer
  }

  /// The result for the clients of a fetch that failed: stale data, with half a minute before the next attempt, or the
  /// failure.
  private func afterFailure(_ fetch: Fetch, _ reason: UpstreamFailure) -> Result<FinishedAnswer, UpstreamFailure> {
    let entry = store.find(fetch.asked, now: loop.now)
    let given = given(entry, or: reason, fetch.asked)
    switch given {
    case .success:
      guard let entry, isShown(reason, by: fetch) else { break }
      store.serveStale(entry, to: fetch.asked, now: loop.now)
      if reason.consequence.leadsToLocalDNS { recovery.add(fetch) }
    case .failure: tally.failures += 1
    }
    return given
  }

  /// Whether the failure shows that asking again soon is useless. It does not if the fetch began before a provider's
  /// recovery.
  private func isShown(_ reason: UpstreamFailure, by fetch: Fetch) -> Bool {
    guard !reason.consequence.isOurs, fetch.configuration === configuration else { return false }
    return !reason.consequence.leadsToLocalDNS || fetch.startedAt > recovery.last
  }

  /// A refresh failed: stale data that was served when it began is served for another half a minute.
  private func goOnServingStale(_ fetch: Fetch, _ reason: UpstreamFailure) {
    guard !reason.consequence.isOurs, let entry = store.find(fetch.asked, now: loop.now), !entry.isFresh,
      entry.isServed(at: fetch.startedAt)
    else { return }
    store.serveStale(entry, to: fetch.asked, now: loop.now)
  }

  /// The entry's answer; without one the failure.
  func given(
    _ entry: CachedAnswer?, or failure: UpstreamFailure, _ asked: ResolverQuestion
  ) -> Result<FinishedAnswer, UpstreamFailure> {
    guard let entry, let answer = store.answer(to: asked, by: entry, now: loop.now) else { return .failure(failure) }
    if !entry.isFresh { tally.stale += 1 }
    return .success(answer)
  }
}
