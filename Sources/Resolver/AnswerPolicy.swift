// AnswerPolicy.swift -- turns an upstream's records into a response for the cache: TTLs, SOA, rebind protection.

import DNSWire
import Frontend
import HTTPDNS
import Routing

/// A response that is ready to be cached and sent.
struct FinishedAnswer {
  var response: ComposedResponse
  /// Seconds for which it may be cached; 0 for not at all.
  var lifetime: UInt32
  /// Whether it is NXDOMAIN for QNAME itself, which is valid for every type and for names below.
  var isNXDOMAIN = false
  /// Whether NXDOMAIN is cached for its type alone: a provider or a plain resolver with precedence had no answer, and may have
  /// data.
  var isOfItsTypeOnly = false
  /// Whether records are missing: sent with TC over UDP, and never cached.
  var isTruncated = false
  /// Whether it is NXDOMAIN or NODATA, also at the end of an alias chain.
  var isNegative = false
  /// Whether it is empty and the dialect cannot express why: another upstream may have data.
  var isAmbiguous = false
  /// The TTL of the SOA record that a negative answer came with; nil without one.
  var soaTTL: UInt32?
  /// Whether it holds on the current network only.
  var isOfNetwork = false
  /// SCOPE PREFIX-LENGTH (RFC 7871); nil if the question has no subnet, or no scope was returned.
  var scope: Int?
}

/// The rules for answers of one source.
struct AnswerPolicy {
  var ttl: TTLBounds
  /// The longest lifetime, in seconds, of a negative answer that came out of order.
  static let outOfOrder: UInt32 = 1
  /// Whether the answer came from LocalDNS instead of a provider.
  var isFallback = false
  /// Whether the upstream's AD bit is trusted.
  var trustsAD = false
  /// Refuses private addresses; nil if rebind protection is off or does not apply.
  var rebindFilter: RebindFilter?

  /// Seconds for which a negative answer without SOA is cached: the shortest time with which the missing address family
  /// of a name in use causes no constant cost.
  private static let ttlWithoutSOA: UInt32 = 30

  /// Composes an answer; nil if it does not fit into a message.
  func finish(_ answer: HTTPDNSAnswer, to question: HTTPDNSQuestion) -> FinishedAnswer? {
    if let rebindFilter, rebindFilter.refuses(answer.answers, for: question.name) {
      return negative(.noError, question, chain: [], authorities: [], extendedError: .filtered)
    }
    guard !answer.isNegative else {
      var finished = negative(
        answer.responseCode, question, chain: answer.answers, authorities: answer.authorities,
        extendedError: answer.extendedError, isAuthenticated: answer.isAuthenticated, scope: answer.scopePrefixLength,
        statedTTL: answer.statedTTL)
      finished?.isAmbiguous = answer.isEmptyAmbiguous
      return finished
    }
    let records = answer.answers.map { clamped($0) }
    guard
      var response = ComposedResponse(
        answer.responseCode, to: question.name, answers: records, authorities: answer.authorities.map { clamped($0) })
    else { return nil }
    response.isAuthenticated = trustsAD && answer.isAuthenticated
    response.extendedError = answer.extendedError
    return FinishedAnswer(response: response, lifetime: response.lowestTTL, scope: answer.scopePrefixLength)
  }

  /// Composes NXDOMAIN or NODATA with the upstream's SOA record or a synthetic one (RFC 2308 sections 3 and 5); nil if
  /// it does not fit into a message.
  ///
  /// - Parameter statedTTL: the lifetime in seconds that an upstream without an SOA record states; nil if it states none.
  func negative(
    _ responseCode: ResponseCode, _ question: HTTPDNSQuestion, chain: [ResourceRecord], authorities: [ResourceRecord],
    extendedError: ExtendedError? = nil, isAuthenticated: Bool = false, scope: Int? = nil,
    statedTTL: UInt32? = nil
  ) -> FinishedAnswer? {
    var authorities = authorities
    let soaTTL = HTTPDNSAnswer(responseCode: responseCode, authorities: authorities).negativeTTL
    let chain = chain.map { clamped($0) }
    let lifetime = negativeLifetime(soaTTL ?? statedTTL, chain)
    if soaTTL == nil {
      let owner = chain.isEmpty ? question.name : ResourceRecord.target(of: chain) ?? question.name
      authorities.insert(SyntheticSOA.record(owner, ttl: lifetime), at: 0)
    }
    for index in authorities.indices { authorities[index].ttl = min(authorities[index].ttl, lifetime) }
    guard var response = ComposedResponse(responseCode, to: question.name, answers: chain, authorities: authorities)
    else { return nil }
    response.isAuthenticated = trustsAD && isAuthenticated
    response.extendedError = extendedError
    return FinishedAnswer(
      response: response, lifetime: lifetime, isNXDOMAIN: responseCode == .nxDomain && chain.isEmpty,
      isNegative: true, soaTTL: soaTTL, scope: scope)
  }

  /// Seconds for which a negative answer may be cached.
  ///
  /// - Parameters:
  ///   - statedTTL: what the SOA record or the upstream says, in seconds; nil if nothing does.
  ///   - chain: the alias chain, its TTLs inside the bounds.
  private func negativeLifetime(_ statedTTL: UInt32?, _ chain: [ResourceRecord]) -> UInt32 {
    var lifetime = min(statedTTL ?? AnswerPolicy.ttlWithoutSOA, ttl.highestNegative)
    if isFallback { lifetime = min(lifetime, ttl.highestFallback) }
    return min(lifetime, chain.map(\.ttl).min() ?? lifetime)
  }

  /// Seconds for which an answer may be cached, as `finish` finds it, without composing the response.
  func lifetime(of answer: HTTPDNSAnswer, to question: HTTPDNSQuestion) -> UInt32 {
    if let rebindFilter, rebindFilter.refuses(answer.answers, for: question.name) { return negativeLifetime(nil, []) }
    let chain = answer.answers.map { clamped($0) }
    guard !answer.isNegative else { return negativeLifetime(answer.negativeTTL ?? answer.statedTTL, chain) }
    return (chain + answer.authorities.map { clamped($0) }).map(\.ttl).min() ?? .max
  }

  /// The record with its TTL inside the bounds. Without a configured lower bound, a TTL of 0 stays 0: such a record is
  /// valid for one transaction only (RFC 1035 section 3.2.1).
  private func clamped(_ record: ResourceRecord) -> ResourceRecord {
    var record = record
    record.ttl = min(max(record.ttl, ttl.lowest), ttl.highest)
    if isFallback { record.ttl = min(record.ttl, ttl.highestFallback) }
    return record
  }
}
