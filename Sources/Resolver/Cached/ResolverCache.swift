// ResolverCache.swift -- what the cold path keeps and what it finds: exact answers, denials, denials of a name above.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Upstreams

extension Resolver {
  /// Keeps an answer under what it depends on. One that may not be kept takes the place of older ones all the same.
  func keep(_ answer: FinishedAnswer, of pursuit: Pursuit, from source: AnswerSource) {
    guard settings.cacheEnabled, isStillRouted(pursuit) else { return }
    // Its key is that of the network on which the question began.
    if source == .localDNS, pursuit.route.belongsToNetwork, pursuit.scope.network != pursuit.network { return }
    let now = loop.now.nanoseconds
    var scope = pursuit.scope
    var response = answer.response
    if answer.deniesName { scope.type = CacheKey.everyType }
    let life = life(of: answer, pursuit, source)
    // What nobody has said of a name does not show that it is there.
    if !answer.deniesName, source != .ourselves {
      namesBelow.note(pursuit.question.name, scope, until: loop.now + .seconds(Int64(life.lifetime)))
    }
    if pursuit.question.clientSubnet != nil, answer.scope != 0 {
      // Only under the subnet that was sent, and under the type that was asked: other subnets may have the name.
      let isKept = pursuit.key.withCacheKey { cache.insert($0, response, now: now, life) }
      if isKept {
        names.kept(pursuit.question.name, scope.type, as: pursuit.key.keyedHash, inheriting: life.hits)
      }
      return
    }
    response.isForEverySubnet = answer.scope == 0 || !pursuit.service.asksForSubnets(pursuit.route)
    let (isKept, hash) = withKey(pursuit.question.name, scope) { key in
      (cache.insert(key, response, now: now, life), key.hash)
    }
    if isKept { names.kept(pursuit.question.name, scope.type, as: hash, inheriting: life.hits) }
    if answer.deniesName {
      // It would be found before the denial.
      _ = pursuit.key.withCacheKey { cache.remove($0) }
    } else if response.answers > 0 {
      scope.type = CacheKey.everyType
      withKey(pursuit.question.name, scope) { _ = cache.remove($0) }
    }
    guard isKept, let refresher else { return }
    refresher.schedule(
      KeptAnswer(
        hash: pursuit.key.keyedHash, life: life, isDenial: answer.deniesName, storedAt: now))
  }

  private func life(of answer: FinishedAnswer, _ pursuit: Pursuit, _ source: AnswerSource) -> EntryLife {
    let policy = pursuit.route.stale
    let hasData = !answer.isNegative
    var life = EntryLife(lifetime: answer.lifetime)
    // What LocalDNS says in a provider's place is not trusted for longer than `localdns.max_ttl`: it ends with that. On
    // another network it is nothing.
    if source == .localDNS, !pursuit.route.providers.isEmpty {
      life.network = pursuit.network
    } else {
      if policy.mode != .off { life.staleFor = policy.maxAge }
      // NXDOMAIN is never given before it has been asked again: the name may be there by now.
      life.isServedStale = hasData && (policy.mode == .immediate || policy.isImmutable)
      life.isImmutable = hasData && policy.isImmutable
    }
    life.source = number(of: source, pursuit.service)
    life.heat = pursuit.heat
    life.hits = pursuit.hits
    life.epoch = pursuit.epoch
    return life
  }

  /// An answer that was kept since the listener looked, or a denial of a name above.
  func kept(
    _ question: HTTPDNSQuestion, _ key: QuestionKey, _ route: Route, _ subnet: QueryClientSubnet
  ) -> FinishedAnswer? {
    let now = loop.now.nanoseconds
    if let found = key.withCacheKey({ cache.peek($0, now: now) }) {
      var answer = aged(found, question.name, now)
      if subnet.family != 0 { answer?.scope = Int(subnet.sourceLength) }
      return answer
    }
    guard subnet.family == 0 else { return nil }
    var scope = scope(question, route)
    scope.type = CacheKey.everyType
    if let found = withKey(question.name, scope, { cache.peek($0, now: now) }) {
      return aged(found, question.name, now)
    }
    return deniedAbove(question, route, scope, now: now)
  }

  /// RFC 8020: NXDOMAIN holds for everything below the name, where whoever said it means the whole tree.
  ///
  /// A network's resolver does not: it has private zones below names that it denies. Nor do some providers, that deny the
  /// empty names between two zones; they are found out by what is kept below.
  private func deniedAbove(
    _ question: HTTPDNSQuestion, _ route: Route, _ denial: CacheScope, now: Int64
  ) -> FinishedAnswer? {
    guard settings.nxdomainCut, !route.providers.isEmpty, !route.isSearched, !isThere(question.name, denial, now)
    else { return nil }
    var name = question.name
    // NXDOMAIN for a single label is nobody's word about a whole top level domain.
    while let parent = name.parent, parent.labelCount > 1 {
      name = parent
      if namesBelow.hasNames(below: parent, denial, now: loop.now) { return nil }
      guard let found = withKey(parent, denial, { cache.peek($0, now: now) }),
        found.source != EntrySource.localDNS.number,
        let above = aged(found, parent, now)
      else { continue }
      return denied(question, route, by: above, at: parent)
    }
    return nil
  }

  /// Whether addresses of the name itself are kept.
  private func isThere(_ name: DomainName, _ scope: CacheScope, _ now: Int64) -> Bool {
    [RecordType.a, .aaaa].contains { type in
      var scope = scope
      scope.type = type.rawValue
      return withKey(name, scope) { cache.peek($0, now: now) }.map { $0.answers > 0 } ?? false
    }
  }

  private func denied(
    _ question: HTTPDNSQuestion, _ route: Route, by above: FinishedAnswer, at parent: DomainName
  ) -> FinishedAnswer? {
    guard let message = above.response.message(to: Question(name: parent, type: question.type)) else { return nil }
    // It was validated, if at all, when it was kept: AD belongs to the name that does not exist, and holds below.
    let isAuthenticated = above.response.isAuthenticated
    return AnswerPolicy(ttl: route.ttl, trustsAD: isAuthenticated).negative(
      .nxDomain, question, chain: [], authorities: message.authorities, isAuthenticated: isAuthenticated)
  }

  /// What is kept, composed anew with the TTLs that are left.
  func aged(_ found: CachedResponse, _ name: DomainName, _ now: Int64) -> FinishedAnswer? {
    guard let message = found.message(name) else { return nil }
    let elapsed = UInt32(clamping: (now - found.storedAt) / 1_000_000_000)
    let left = UInt32(clamping: (found.expiresAt - now) / 1_000_000_000)
    func older(_ record: ResourceRecord) -> ResourceRecord {
      var record = record
      record.ttl -= min(record.ttl, elapsed)
      return record
    }
    guard
      var response = ComposedResponse(
        found.responseCode, to: name, answers: message.answers.map(older), authorities: message.authorities.map(older))
    else { return nil }
    response.isAuthenticated = found.isAuthenticated
    response.extendedError = found.extendedError
    return FinishedAnswer(response: response, lifetime: left)
  }

  /// Whether the pursuit's route is one of the present configuration: otherwise nobody would find the answer.
  private func isStillRouted(_ pursuit: Pursuit) -> Bool {
    pursuit.service === service || service.route(pursuit.route.number) != nil
  }
}

extension Upstream {
  /// Whether it is told clients' own subnets.
  var takesClientSubnet: Bool {
    // Two, since one of them may be the fixed subnet of the configuration.
    [IPPrefix(text: "192.0.2.0/24")!, IPPrefix(text: "198.51.100.0/24")!].allSatisfy { subnet(for: $0) == $0 }
  }
}

extension CachedResponse {
  /// The records, parsed, as they were stored.
  func message(_ name: DomainName) -> Message? {
    Message.assembled(name, answers: answers, authorities: authorities, responseCode: responseCode, body: body)
  }
}

extension ComposedResponse {
  /// The records, parsed.
  package func message(to question: Question) -> Message? {
    Message.assembled(
      question.name, type: question.type, answers: answers, authorities: authorities, responseCode: responseCode,
      body: body)
  }
}

extension Message {
  /// Puts a header and a question before a body and parses the whole.
  static func assembled(
    _ name: DomainName, type: RecordType = .a, answers: UInt16, authorities: UInt16, responseCode: ResponseCode,
    body: [UInt8]
  ) -> Message? {
    var octets: [UInt8] = [0, 0, 0x80, UInt8(responseCode.rawValue & 0xF), 0, 1]
    for count in [answers, authorities, 0] { octets += [UInt8(count >> 8), UInt8(truncatingIfNeeded: count)] }
    octets += name.octets + [UInt8(type.rawValue >> 8), UInt8(truncatingIfNeeded: type.rawValue), 0, 1] + body
    return try? Message.parse(octets)
  }
}
