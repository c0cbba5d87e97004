// DNS64.swift -- answers for an IPv6-only network: AAAA records that are made of A records (RFC 6147).
//
// Resolver's loop only.

import DNSWire
import Frontend
import HTTPDNS
import MessageCache
import Routing
import Upstreams

extension Resolver {
  /// Asks the upstreams. If the network reaches IPv4 through a NAT64, a name without AAAA gets those of its A records, and an
  /// address below the prefix has the name of the IPv4 address in it.
  func askThroughNAT64(_ fetch: Fetch) async -> FetchResult {
    guard let name = nat64?.prefix?.ipv4Pointer(fetch.question) else {
      return await translated(await askUpstreams(fetch), to: fetch.asked)
    }
    let pointer = await resolve(HTTPDNSQuestion(name: name, type: .ptr), route: fetch.route.number, fresh: false)
    return FetchResult(pointer: pointer, of: name, to: fetch.asked)
  }

  /// The result, with AAAA records of the name's A records in the place of none.
  func translated(_ result: FetchResult, to asked: ResolverQuestion) async -> FetchResult {
    guard let prefix = nat64?.prefix, prefix.isTranslatable(result, asked), let route = composer.ipv4Route(of: asked)
    else { return result }
    let number = network.number
    let ipv4 = await resolve(HTTPDNSQuestion(name: asked.question.name, type: .a), route: route, fresh: false)
    guard number == network.number, prefix == nat64?.prefix else { return result }
    return prefix.translated(result, ipv4, to: asked)
  }

  /// Stores the answer to another question of the same reply.
  func insertTranslated(_ result: FetchResult, to asked: ResolverQuestion, _ origin: EntryOrigin) async {
    if let answer = await translated(result, to: asked).answer { insert(answer, to: asked, origin) }
  }
}

extension NAT64Prefix {
  /// Whether a result is the answer of a provider that a name has no address of IPv6, so that one may be made.
  ///
  /// LocalDNS's answers are as the network wants them. A client that set CD validates, and would refuse such a record.
  func isTranslatable(_ result: FetchResult, _ asked: ResolverQuestion) -> Bool {
    guard asked.question.type == .aaaa, !asked.question.checkingDisabled, !result.source.isLocalDNS,
      let answer = result.answer, answer.response.responseCode == .noError
    else { return false }
    guard !answer.isNegative else { return true }
    let records =
      answer.response.message(to: Question(name: asked.question.name, type: .aaaa))?.answers.filter { $0.type == .aaaa }
      ?? []
    return !records.isEmpty && records.allSatisfy { $0.rdata.starts(with: IPAddress.mappedPrefix) }
  }

  /// The result, with AAAA records of these A records if there are any.
  fileprivate func translated(_ result: FetchResult, _ ipv4: ResolvedAnswer, to asked: ResolverQuestion) -> FetchResult
  {
    guard ipv4.failure == nil,
      let records = ipv4.response.message(to: Question(name: asked.question.name, type: .a))?.answers
    else { return result }
    let longest = result.answer?.soaTTL ?? NAT64Prefix.longestWithoutSOA
    let made = records.compactMap { record -> ResourceRecord? in
      guard record.type == .a else { return record.type == .cname || record.type == .dname ? record : nil }
      guard let address = IPAddress(octets: record.rdata), !RebindFilter.isPrivate(record.rdata) else { return nil }
      var record = record
      (record.type, record.rdata) = (.aaaa, self.address(of: address).octets)
      record.ttl = min(record.ttl, longest)
      return record
    }
    guard made.contains(where: { $0.type == .aaaa }) else { return result }
    let answer = HTTPDNSAnswer(responseCode: .noError, answers: made)
    guard var finished = AnswerPolicy(ttl: asked.route.ttl).finish(answer, to: asked.question) else { return result }
    finished.isOfNetwork = true
    return FetchResult(result: .success(finished), source: result.source)
  }

  /// The reverse name of the IPv4 address that a reverse name below the prefix stands for; nil for every other question.
  fileprivate func ipv4Pointer(_ question: HTTPDNSQuestion) -> DomainName? {
    guard question.type == .ptr, let address = IPAddress(ipv6ReverseName: question.name) else { return nil }
    return ipv4Address(in: address)?.reverseName
  }

  /// The longest TTL of a made record in seconds if the denial had no SOA record (RFC 6147 section 5.1.7).
  private static let longestWithoutSOA: UInt32 = 600
}

extension FetchResult {
  /// The PTR records of another name, behind an alias (RFC 6147 section 5.3.1).
  fileprivate init(pointer: ResolvedAnswer, of name: DomainName, to asked: ResolverQuestion) {
    guard pointer.failure == nil, let message = pointer.response.message(to: Question(name: name, type: .ptr)) else {
      self = .failure(.noAnswerInTime)
      return
    }
    let ttl = message.answers.map(\.ttl).min() ?? pointer.lifetime
    let alias = ResourceRecord(owner: asked.question.name, type: .cname, ttl: ttl, rdata: name.octets)
    let code = pointer.response.responseCode
    let policy = AnswerPolicy(ttl: asked.route.ttl)
    var finished =
      message.answers.contains { $0.type == .ptr }
      ? policy.finish(HTTPDNSAnswer(responseCode: code, answers: [alias] + message.answers), to: asked.question)
      : policy.negative(code, asked.question, chain: [alias] + message.answers, authorities: message.authorities)
    finished?.isOfNetwork = true
    self.init(result: finished.map { .success($0) } ?? .failure(.tooLong), source: pointer.source)
  }
}
