// ResolverStale.swift -- data that has expired, given for want of better (RFC 8767).

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache

extension Resolver {
  /// While nobody knows better, stale data is served for so long before the next attempt (RFC 8767 section 5).
  static let staleRecheck = Duration.seconds(30)

  /// What may be given although it has expired: the answer itself, else that the name did not exist. Nil for nothing.
  func staleAnswer(
    _ question: HTTPDNSQuestion, _ key: QuestionKey, _ route: UInt16, _ subnet: QueryClientSubnet
  ) -> FinishedAnswer? {
    guard settings.cacheEnabled else { return nil }
    let now = loop.now.nanoseconds
    if let found = key.withCacheKey({ cache.peek($0, now: now, orStale: true) }) {
      var answer = stale(found, question.name)
      if subnet.family != 0 { answer?.scope = Int(subnet.sourceLength) }
      return answer
    }
    guard subnet.family == 0 else { return nil }
    return withKey(question.name, denialScope(question, route)) { cache.peek($0, now: now, orStale: true) }
      .flatMap { stale($0, question.name) }
  }

  /// Stale data where there is some, which the listeners may give from now on too; otherwise the failure.
  func staleOr(
    _ failure: UpstreamFailure, _ question: HTTPDNSQuestion, _ key: QuestionKey, _ route: UInt16,
    _ subnet: QueryClientSubnet
  ) -> Result<FinishedAnswer, UpstreamFailure> {
    guard let answer = staleAnswer(question, key, route, subnet) else { return .failure(failure) }
    counters.stale += 1
    return .success(answer)
  }

  /// What a failed question comes to: stale data, with half a minute before the next attempt, or the failure, which is
  /// remembered (RFC 9520).
  func afterFailure(_ pursuit: Pursuit, _ reason: UpstreamFailure) -> Result<FinishedAnswer, UpstreamFailure> {
    let (question, key, route) = (pursuit.question, pursuit.key, pursuit.routeNumber)
    let given = staleOr(reason, question, key, route, pursuit.subnet)
    switch given {
    case .success:
      let end = (loop.now + Resolver.staleRecheck).nanoseconds
      key.withCacheKey { cache.serveStale($0, until: end) }
      if pursuit.subnet.family == 0 {
        withKey(question.name, denialScope(question, route)) { cache.serveStale($0, until: end) }
      }
    case .failure:
      counters.failures += 1
      if !reason.isOverload { failures.failed(key, reason.extendedError, now: loop.now) }
    }
    return given
  }

  private func denialScope(_ question: HTTPDNSQuestion, _ route: UInt16) -> CacheScope {
    var scope = scope(question, route)
    scope.type = CacheKey.everyType
    return scope
  }

  private func stale(_ found: CachedResponse, _ name: DomainName) -> FinishedAnswer? {
    let now = loop.now.nanoseconds
    if now < found.expiresAt { return aged(found, name, now) }
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
