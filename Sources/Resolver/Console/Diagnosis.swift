// Diagnosis.swift -- compares the answers of each provider and of the network's resolvers to a name.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import LocalDNS
import Routing
import Upstreams

/// The answer of one upstream about a name's addresses of one family.
package struct Opinion: Sendable {
  /// An upstream: a provider, or one of the network's resolvers.
  package enum Who: Hashable, Sendable {
    /// A provider, by its name in the configuration.
    case provider(String)
    /// A plain resolver, by its address.
    case localDNS(String)

    /// If not, it is the network's.
    package var isProvider: Bool { if case .provider = self { true } else { false } }
  }

  /// The upstream that was asked.
  package var who: Who
  /// A or AAAA.
  package var type: RecordType
  /// The response time.
  package var took: Duration
  /// What the upstream answered.
  package var outcome: Answer

  /// What an upstream says: addresses, that there are none, or nothing.
  package enum Answer: Hashable, Sendable {
    /// Addresses, and the lowest TTL in seconds.
    case addresses([IPAddress], ttl: UInt32)
    /// NODATA: the name exists, and has no such address.
    case noData
    /// NXDOMAIN.
    case noName
    /// Nothing about the name, which may not be in the account's list or in the table, with the reason.
    case notListed(String)
    /// Nothing about any name: the table is switched off.
    case switchedOff
    /// No answer, with the reason.
    case failure(String)

    /// The addresses; empty for anything else.
    package var addresses: [IPAddress] {
      if case .addresses(let addresses, _) = self { addresses } else { [] }
    }

    /// Whether it says anything about the name.
    var isWord: Bool {
      switch self {
      case .addresses, .noData, .noName: true
      case .notListed, .switchedOff, .failure: false
      }
    }
  }
}

/// How a plain resolver's answer compares with those of the providers.
package enum Agreement: Hashable, Sendable {
  /// A provider's answer, with which the others are compared.
  case reference
  /// The providers have the same answer, or share an address with it.
  case agrees
  /// There is no answer, or nothing to compare it with.
  case unknown
  /// Addresses that no provider has; this is also usual for a service that answers by region.
  case differs
  /// A private or sinkhole address for a public name.
  case privateAddress
  /// Addresses for a name for which the providers have none and at least one says NXDOMAIN.
  case invented
  /// NODATA or NXDOMAIN for a name for which a provider has addresses.
  case hidden

  /// Whether the answer may have been hijacked.
  package var isSuspicious: Bool {
    switch self {
    case .privateAddress, .invented, .hidden, .differs: true
    case .reference, .agrees, .unknown: false
    }
  }

  /// Compares one opinion with those of the providers about the same family.
  package init(of opinion: Opinion, among all: [Opinion]) {
    if opinion.who.isProvider {
      self = .reference
      return
    }
    let providers = all.filter { $0.who.isProvider && $0.type == opinion.type }.map(\.outcome)
    let known = Set(providers.flatMap(\.addresses))
    let negatives = providers.count { $0 == .noName }
    let hasWord = providers.contains(where: \.isWord)
    switch opinion.outcome {
    case .failure, .notListed, .switchedOff: self = .unknown
    case _ where !hasWord: self = .unknown
    case .addresses(let addresses, _):
      if !known.isDisjoint(with: addresses) {
        self = .agrees
      } else if known.isEmpty {
        self = negatives > 0 ? .invented : .differs
      } else if addresses.contains(where: Agreement.isPrivate), !known.contains(where: Agreement.isPrivate) {
        self = .privateAddress
      } else {
        self = .differs
      }
    case .noData, .noName: self = known.isEmpty ? .agrees : .hidden
    }
  }

  private static func isPrivate(_ address: IPAddress) -> Bool { RebindFilter.isPrivate(address.octets) }
}

extension ResolverConsole {
  /// Asks all providers that serve the name and all known plain resolvers at once, past rules and cache.
  ///
  /// - Returns: the opinions by type; within a type, those of the providers come first.
  package func opinions(on name: DomainName, _ types: [RecordType]) async -> [Opinion] {
    var tasks: [Task<Opinion, Never>] = []
    for type in types {
      let question = HTTPDNSQuestion(name: name, type: type)
      for provider in upstreams.filter({ $0.serves(question) }).map(\.name) {
        tasks.append(loop.startTask { await self.opinion(of: provider, on: question) })
      }
      for server in local?.addresses ?? [] {
        tasks.append(loop.startTask { await self.opinion(ofResolver: server, on: question) })
      }
    }
    var opinions: [Opinion] = []
    for task in tasks { opinions.append(await task.value) }
    return opinions
  }

  private func opinion(of name: String, on question: HTTPDNSQuestion) async -> Opinion {
    let began = BootInstant.now
    let result = await answer(question, of: name)
    return Opinion(
      who: .provider(name), type: question.type, took: .now - began,
      outcome: Opinion.Answer(result, question.type, upstreams.first { $0.name == name }?.traits))
  }

  private func opinion(ofResolver server: PlainResolver, on question: HTTPDNSQuestion) async -> Opinion {
    let began = BootInstant.now
    let result = await local?.ask(
      question, [Configuration.LocalServer(server)], timeout: configuration.settings.localTimeout)
    return Opinion(
      who: .localDNS(server.description), type: question.type, took: .now - began,
      outcome: Opinion.Answer(result ?? .failure(.noServer), question.type))
  }

  /// Asks one provider, past rules and cache; nil if there is no such provider, if it does not serve the question, or if
  /// its answer does not fit into a message.
  package func ask(_ question: HTTPDNSQuestion, of provider: String) async -> ResolvedAnswer? {
    guard let upstream = upstreams.first(where: { $0.name == provider }), upstream.serves(question) else { return nil }
    switch await answer(question, of: provider) {
    case .failure(let failure):
      return ResolvedAnswer(
        response: ComposedResponse(.servFail, extendedError: failure.extendedError), lifetime: 0, source: .ourselves,
        failure: failure.explanation, trail: failure.trail(of: provider))
    case .success(let reply):
      let policy = AnswerPolicy(ttl: TTLBounds(lowest: 0, highest: .max, highestNegative: .max, highestFallback: .max))
      let source = AnswerSource.provider(provider, server: reply.server)
      let code = reply.answer.responseCode
      guard code == .noError || code == .nxDomain else {
        return ResolvedAnswer(
          response: ComposedResponse(code), lifetime: 0, source: source,
          failure: UpstreamFailure.refused(code, by: source.server).reason)
      }
      guard let finished = policy.finish(reply.answer, to: question) else { return nil }
      return ResolvedAnswer(FetchResult(result: .success(finished), source: source))
    }
  }

  private func answer(
    _ question: HTTPDNSQuestion, of provider: String
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    guard let upstream = upstreams.first(where: { $0.name == provider }) else { return .failure(.noServer) }
    var question = question
    question.clientSubnet = upstream.subnet(for: nil)
    return await upstream.ask(
      question, for: OwnQuestion(question.name, now: loop.now), deadline: loop.now + ResolverSettings.answerBy,
      isLastResort: true)
  }
}

extension Opinion.Answer {
  /// - Parameter traits: those of the provider; nil for LocalDNS.
  init(
    _ result: Result<UpstreamAnswer, UpstreamFailure>, _ type: RecordType, _ traits: UpstreamTraits? = nil
  ) {
    switch result {
    case .failure(let failure) where failure.absence == .switchedOff: self = .switchedOff
    case .failure(let failure) where failure.isNotListed: self = .notListed(failure.reason)
    case .failure(let failure): self = .failure(failure.explanation)
    case .success(let reply):
      let records = reply.answer.answers.filter { $0.type == type }
      let addresses = records.compactMap { IPAddress(octets: $0.rdata) }
      if !addresses.isEmpty {
        self = .addresses(addresses, ttl: records.map(\.ttl).min() ?? 0)
      } else {
        switch reply.answer.responseCode {
        case .noError:
          self =
            reply.answer.isEmptyAmbiguous ? .notListed(traits?.ambiguity ?? UpstreamTraits.usualAmbiguity) : .noData
        case .nxDomain: self = .noName
        case let code: self = .failure(UpstreamFailure.refused(code, by: reply.server).reason)
        }
      }
    }
  }
}
