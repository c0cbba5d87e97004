// AnswerComposer.swift -- turns an upstream's reply into the answer that clients get.
//
// Resolver's loop only. `AnswerPolicy` has the rules for one source; here they are chosen, and cached answers about the same
// name count as well.

import DNSWire
import EventLoop
import Fleet
import HTTPDNS
import MessageCache
import Routing
import Upstreams

/// Composes answers under the configuration of their question.
final class AnswerComposer {
  private let store: AnswerStore
  private let loop: any Loop
  /// The routes of names; nil in tests that need none.
  var table: RouteTable?

  init(_ store: AnswerStore, _ table: RouteTable?, on loop: any Loop) {
    (self.store, self.table, self.loop) = (store, table, loop)
  }

  /// How LocalDNS's answer came about.
  struct LocalOrigin {
    /// Whether LocalDNS answers instead of a provider.
    var isFallback: Bool
    /// Whether a resolver that has precedence gave no answer.
    var isOutOfOrder: Bool
    var isTruncated: Bool
  }

  /// Composes the answer of a provider.
  func finish(
    _ answer: HTTPDNSAnswer, from upstream: any Upstream, _ source: AnswerSource, to asked: ResolverQuestion
  ) -> FetchResult {
    var answer = answer
    if !asked.sendsItsSubnet(to: upstream) { answer.scopePrefixLength = nil }
    return finish(answer, from: source, to: asked, trustsAD: upstream.trustsAD)
  }

  /// - Parameter local: set for LocalDNS; otherwise it is a provider's answer, with any scope.
  func finish(
    _ answer: HTTPDNSAnswer, from source: AnswerSource, to asked: ResolverQuestion, trustsAD: Bool = false,
    local: LocalOrigin? = nil
  ) -> FetchResult {
    var answer = answer
    if local != nil { answer.dropRootSOA(of: asked.question.name) }
    guard answer.responseCode == .noError || answer.responseCode == .nxDomain else {
      let failure = UpstreamFailure.refused(answer.responseCode, by: source.server, answer.extendedError)
      return FetchResult(result: .failure(failure), source: source)
    }
    var policy = policy(asked, trustsAD: trustsAD)
    // Below its search domain a network may use private addresses.
    if local != nil, asked.route.isSearched { policy.rebindFilter = nil }
    policy.isFallback = local?.isFallback ?? false
    if local?.isOutOfOrder ?? false {
      policy.ttl.highestNegative = min(policy.ttl.highestNegative, AnswerPolicy.outOfOrder)
    }
    guard var finished = policy.finish(answer, to: asked.question) else {
      return FetchResult(result: .failure(.tooLong), source: source)
    }
    if let local {
      finished.isOfItsTypeOnly = local.isFallback || local.isOutOfOrder
      finished.isTruncated = local.isTruncated
    }
    return FetchResult(result: .success(withoutContradiction(finished, asked, policy)), source: source)
  }

  /// Converts a value of the store to an answer, by the same rules as for a provider's response.
  func finish(_ found: FoundValue, to asked: ResolverQuestion) throws(FleetRejection) -> FetchResult {
    let (value, question) = (found.value, asked.question)
    guard value.scope ?? 0 <= asked.subnet.prefix?.length ?? 0 else { throw .records }
    let providers = asked.route.providers.map { asked.configuration.upstreams[$0] }
    // AD of untrusted providers was cleared by the daemon that wrote the value.
    var policy = policy(asked, trustsAD: providers.contains(where: \.trustsAD))
    var answer = try HTTPDNSAnswer(value, to: question)
    let rest = try found.rest(longest: policy.lifetime(of: answer, to: question))
    answer.answers = found.aged(answer.answers, rest: rest)
    answer.authorities = found.aged(answer.authorities, rest: rest)
    // The TTL limits were applied when the value was written: do not raise TTLs again, and do not exceed its remaining life.
    policy.ttl.lowest = 0
    policy.ttl.highest = min(policy.ttl.highest, rest)
    policy.ttl.highestNegative = min(policy.ttl.highestNegative, rest)
    guard let finished = policy.finish(answer, to: question), finished.lifetime > 0 else { throw .records }
    let name = (providers.first { $0.name == value.provider } ?? providers.first)?.name
    return FetchResult(
      result: .success(withoutContradiction(finished, asked, policy)),
      source: .fleet(provider: name ?? value.provider))
  }

  private func policy(_ asked: ResolverQuestion, trustsAD: Bool) -> AnswerPolicy {
    AnswerPolicy(
      ttl: asked.route.ttl, trustsAD: trustsAD,
      rebindFilter: asked.route.filtersPrivate ? asked.configuration.settings.rebindFilter : nil)
  }

  /// The name exists if addresses of one family are cached: NXDOMAIN for the other family can only mean NODATA.
  private func withoutContradiction(
    _ answer: FinishedAnswer, _ asked: ResolverQuestion, _ policy: AnswerPolicy
  ) -> FinishedAnswer {
    let type = asked.question.type
    guard answer.isNXDOMAIN, type == .a || type == .aaaa,
      store.hasAddresses(asked, type == .a ? .aaaa : .a, now: loop.now)
    else { return answer }
    return policy.negative(.noError, asked.question, chain: [], authorities: []) ?? answer
  }

  /// The answer; NODATA instead of NXDOMAIN if the hosts file has the name. Every answer that is given or stored passes
  /// here, after all upstreams that may have data.
  func ofExistingName(_ answer: FinishedAnswer, _ asked: ResolverQuestion) -> FinishedAnswer {
    guard answer.isNXDOMAIN, asked.route.hostsNamesOf != nil else { return answer }
    var policy = AnswerPolicy(ttl: asked.route.ttl)
    policy.ttl.highestNegative = min(policy.ttl.highestNegative, answer.lifetime)
    return policy.negative(
      .noError, asked.question, chain: [], authorities: [], extendedError: answer.response.extendedError) ?? answer
  }

  /// A denial of our own.
  ///
  /// - Parameter isCached: whether its lifetime is the usual one of a denial without SOA record; otherwise it is 0.
  func ownNegativeAnswer(
    _ code: ResponseCode, of asked: ResolverQuestion, _ error: ExtendedError? = nil, isCached: Bool = true
  ) -> FetchResult {
    let policy = AnswerPolicy(ttl: asked.route.ttl)
    let answer = policy.negative(code, asked.question, chain: [], authorities: [], extendedError: error)
    guard var answer else { return .failure(.tooLong) }
    if !isCached { answer.lifetime = 0 }
    return FetchResult(result: .success(answer), source: .ourselves)
  }
}

extension HTTPDNSAnswer {
  /// An SOA of the root becomes one of the name: a resolver behind this daemon may conclude from the root's that the
  /// top-level domain does not exist, which the network cannot know.
  fileprivate mutating func dropRootSOA(of name: DomainName) {
    guard !name.isRoot, authorities.contains(where: { $0.type == .soa && $0.owner.isRoot }) else { return }
    authorities = authorities.filter { $0.type == .soa && $0.owner.isRoot }
    for index in authorities.indices { authorities[index].owner = name }
  }

  /// Reads the answer in a value of the store as the provider gave it, with the checks of a provider's own response.
  fileprivate init(_ value: FleetValue, to question: HTTPDNSQuestion) throws(FleetRejection) {
    do throws(HTTPDNSFailure) { self = try HTTPDNSAnswer(value.message, to: question) } catch { throw .records }
    guard responseCode == .noError || responseCode == .nxDomain else { throw .records }
    (scopePrefixLength, extendedError) = (value.scope, value.extendedError)
    isAuthenticated = value.message.header.ad
  }
}
