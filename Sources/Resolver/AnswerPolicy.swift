// AnswerPolicy.swift -- from an upstream's records to the response that is kept: TTLs, SOA, rebind protection.

import DNSWire
import Frontend
import HTTPDNS
import Routing

/// A response ready to be kept and sent.
struct FinishedAnswer {
  var response: ComposedResponse
  /// Seconds that it may be kept; 0 for not at all.
  var lifetime: UInt32
  /// Whether NXDOMAIN was said of QNAME itself, so that it holds for every type and for names below.
  var deniesName = false
  /// Whether it is NXDOMAIN or NODATA, be it at the end of aliases.
  var isNegative = false
  /// Whether it is empty for a reason that the dialect cannot tell: another upstream may have data.
  var isAmbiguous = false
  /// SCOPE PREFIX-LENGTH, where a subnet was sent and the upstream gave one.
  var scope: Int?
}

/// What the rules say about answers of one origin.
struct AnswerPolicy {
  var ttl: TTLBounds
  /// Whether the answer came from LocalDNS in a provider's place.
  var isFallback = false
  /// Whether the upstream's AD bit counts.
  var trustsAD = false
  /// Refuses private addresses, where that is switched on.
  var rebindFilter: RebindFilter?

  /// Seconds that a negative answer without SOA is kept: the shortest that does not make the other family of a name that
  /// is in use a steady expense.
  private static let ttlWithoutSOA: UInt32 = 30

  /// Composes an answer; nil where it does not fit into a message.
  func finish(_ answer: HTTPDNSAnswer, to question: HTTPDNSQuestion) -> FinishedAnswer? {
    if let rebindFilter, rebindFilter.refuses(answer.answers, for: question.name) {
      return negative(.noError, question, chain: [], authorities: [], extendedError: .filtered)
    }
    guard !answer.isNegative else {
      var finished = negative(
        answer.responseCode, question, chain: answer.answers, authorities: answer.authorities,
        extendedError: answer.extendedError, isAuthenticated: answer.isAuthenticated, scope: answer.scopePrefixLength)
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

  /// NXDOMAIN or NODATA, with the upstream's SOA record or one of our own (RFC 2308 sections 3 and 5).
  func negative(
    _ responseCode: ResponseCode, _ question: HTTPDNSQuestion, chain: [ResourceRecord],
    authorities: [ResourceRecord], extendedError: ExtendedError? = nil, isAuthenticated: Bool = false,
    scope: Int? = nil
  ) -> FinishedAnswer? {
    var authorities = authorities
    let soaTTL = HTTPDNSAnswer(responseCode: responseCode, authorities: authorities).negativeTTL
    var lifetime = min(soaTTL ?? AnswerPolicy.ttlWithoutSOA, ttl.highestNegative)
    if isFallback { lifetime = min(lifetime, ttl.highestFallback) }
    let chain = chain.map { clamped($0) }
    lifetime = min(lifetime, chain.map(\.ttl).min() ?? lifetime)
    if soaTTL == nil {
      let owner = chain.isEmpty ? question.name : ResourceRecord.target(of: chain) ?? question.name
      authorities.insert(SyntheticSOA.record(owner, ttl: lifetime), at: 0)
    }
    for index in authorities.indices { authorities[index].ttl = min(authorities[index].ttl, lifetime) }
    guard
      var response = ComposedResponse(responseCode, to: question.name, answers: chain, authorities: authorities)
    else { return nil }
    response.isAuthenticated = trustsAD && isAuthenticated
    response.extendedError = extendedError
    return FinishedAnswer(
      response: response, lifetime: lifetime, deniesName: responseCode == .nxDomain && chain.isEmpty,
      isNegative: true, scope: scope)
  }

  /// A record with its TTL inside the bounds. A TTL of 0 stays: such a record is for one transaction only
  /// (RFC 1035 section 3.2.1), unless a lower bound was configured.
  private func clamped(_ record: ResourceRecord) -> ResourceRecord {
    var record = record
    record.ttl = min(max(record.ttl, ttl.lowest), ttl.highest)
    if isFallback { record.ttl = min(record.ttl, ttl.highestFallback) }
    return record
  }
}

extension ResourceRecord {
  /// Where a CNAME chain ends.
  static func target(of chain: [ResourceRecord]) -> DomainName? {
    chain.last { $0.type == .cname }.flatMap { DomainName(octets: $0.rdata) }
  }
}
