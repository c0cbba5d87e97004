// ResolverStale.swift -- data that has expired, given for want of better (RFC 8767).

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Upstreams

extension Resolver {
  /// While nobody knows better, stale data is served for so long before the next attempt (RFC 8767 section 5).
  static let staleRecheck = Duration.seconds(30)

  /// What may be given although it has expired: the newest, since a denial that came later than an address says more.
  /// Where something is fresh by now, that.
  func staleData(_ question: HTTPDNSQuestion, _ route: Route, _ subnet: QueryClientSubnet) -> StaleData? {
    guard settings.cacheEnabled else { return nil }
    let asked = scope(question, route)
    var denial = asked
    denial.type = CacheKey.everyType
    var newest: StaleData?
    func look(_ scope: CacheScope, _ place: QueryClientSubnet) {
      let now = loop.now.nanoseconds
      let found = withKey(question.name, scope, subnet: place) { cache.peek($0, now: now, orStale: true) }
      guard let found, place.family != 0 || subnet.family == 0 || found.isForEverySubnet else { return }
      let data = StaleData(found: found, scope: scope, subnet: place, isFresh: now < found.expiresAt)
      if let newest, newest.isFresh || !data.isFresh && newest.found.storedAt > found.storedAt { return }
      newest = data
    }
    if subnet.family != 0 { look(asked, subnet) }
    look(asked, QueryClientSubnet())
    look(denial, QueryClientSubnet())
    if subnet.family != 0 { newest?.answersSubnet = true }
    return newest
  }

  /// Stale data where there is some; otherwise the failure.
  func given(
    _ data: StaleData?, or failure: UpstreamFailure, _ question: HTTPDNSQuestion
  ) -> Result<FinishedAnswer, UpstreamFailure> {
    guard let data, var answer = stale(data, question.name) else { return .failure(failure) }
    if data.answersSubnet { answer.scope = Int(data.subnet.sourceLength) }
    if !data.isFresh { counters.stale += 1 }
    return .success(answer)
  }

  /// The clients of a pursuit get stale data if nothing fresh comes in time.
  func giveStaleInTime(_ pursuit: Pursuit) {
    let policy = pursuit.route.stale
    if policy.mode != .off { pursuit.staleAt = loop.now + policy.wait }
  }

  /// What a failed question comes to: stale data, with half a minute before the next attempt, or the failure, which is
  /// remembered (RFC 9520). Of our own limits nothing is remembered.
  func afterFailure(_ pursuit: Pursuit, _ reason: UpstreamFailure) -> Result<FinishedAnswer, UpstreamFailure> {
    let question = pursuit.question
    let data = staleData(question, pursuit.route, pursuit.subnet)
    let given = given(data, or: reason, question)
    switch given {
    case .success:
      guard let data, isRemembered(reason, of: pursuit) else { break }
      let end = (loop.now + Resolver.staleRecheck).nanoseconds
      withKey(question.name, data.scope, subnet: data.subnet) { cache.serveStale($0, until: end) }
      if reason.blame.endsWithRecovery { awaitsRecovery(pursuit) }
    case .failure:
      counters.failures += 1
      if isRemembered(reason, of: pursuit) { failures.failed(pursuit.key, reason.blame, now: loop.now) }
    }
    return given
  }

  /// A provider's final word has come after LocalDNS's answer was given, which does not outlive it.
  func forgetLocalAnswer(of pursuit: Pursuit, _ reason: UpstreamFailure) {
    let now = loop.now.nanoseconds
    func forget(_ key: CacheKey) -> Bool {
      guard cache.peek(key, now: now)?.source == EntrySource.localDNS.number else { return false }
      return cache.remove(key)
    }
    var everyType = pursuit.scope
    everyType.type = CacheKey.everyType
    let hadType = pursuit.key.withCacheKey(forget)
    let hadName = withKey(pursuit.question.name, everyType, subnet: pursuit.subnet, forget)
    if hadType || hadName, pursuit.service === service { failures.failed(pursuit.key, reason.blame, now: loop.now) }
  }

  /// An attempt that nobody waited for has failed: stale data that was given when it began has half a minute again.
  func goOnServingStale(_ pursuit: Pursuit, _ reason: UpstreamFailure) {
    guard reason.blame.isRemembered, let data = staleData(pursuit.question, pursuit.route, pursuit.subnet),
      !data.isFresh, data.isServed(at: pursuit.startedAt)
    else { return }
    let end = (loop.now + Resolver.staleRecheck).nanoseconds
    withKey(pursuit.question.name, data.scope, subnet: data.subnet) { cache.serveStale($0, until: end) }
  }

  private func stale(_ data: StaleData, _ name: DomainName) -> FinishedAnswer? {
    let found = data.found
    if data.isFresh { return aged(found, name, loop.now.nanoseconds) }
    guard let message = found.message(name) else { return nil }
    func shortened(_ record: ResourceRecord) -> ResourceRecord {
      var record = record
      record.ttl = min(record.ttl, settings.staleTTL)
      return record
    }
    guard
      var response = ComposedResponse(
        found.responseCode, to: name, answers: message.answers.map(shortened),
        authorities: message.authorities.map(shortened))
    else { return nil }
    response.isAuthenticated = found.isAuthenticated
    response.extendedError = found.responseCode == .nxDomain ? .staleNXDomain : .staleAnswer
    return FinishedAnswer(response: response, lifetime: 0)
  }
}

/// What the cache has for a question that nobody answers, and where.
struct StaleData {
  var found: CachedResponse
  var scope: CacheScope
  var subnet: QueryClientSubnet
  /// Whether it has not expired after all.
  var isFresh: Bool
  /// Whether the client is told for which addresses it holds.
  var answersSubnet = false

  /// Whether it is data, not a negative answer, that was asked for in more seconds than one. A stranger's zone can make any
  /// number of names that were asked for once.
  var isInUse: Bool { found.isInUse && found.answers > 0 && found.responseCode == .noError }

  /// Whether nobody needs to be asked: it is fresh, or served stale at present.
  func isServed(at now: BootInstant) -> Bool { isFresh || now.nanoseconds < found.staleUntil }
}
