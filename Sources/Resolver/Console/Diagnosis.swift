// Diagnosis.swift -- what each provider and each of the network's resolvers says about a name, side by side.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import LocalDNS
import Routing
import Upstreams

/// What one upstream says about a name's addresses of one family.
package struct Opinion: Sendable {
  /// Who was asked.
  package enum Who: Hashable, Sendable {
    /// A provider, by its name in the configuration.
    case provider(String)
    /// A plain resolver, by its address.
    case localDNS(String)
  }

  /// Who was asked.
  package var who: Who
  /// A or AAAA.
  package var type: RecordType
  /// How long it took.
  package var took: Duration
  /// What came back.
  package var outcome: Outcome

  /// What came back.
  package enum Outcome: Hashable, Sendable {
    /// Addresses, and the lowest TTL in seconds.
    case addresses([IPAddress], ttl: UInt32)
    /// The name exists, or so it is said, and has no such address.
    case noData
    /// There is no such name.
    case noName
    /// Nothing, which may only mean that the name is not in the account's list, or the table.
    case notListed
    /// No answer, and why.
    case failure(String)

    /// The addresses; empty for anything else.
    package var addresses: [IPAddress] {
      if case .addresses(let addresses, _) = self { addresses } else { [] }
    }

    /// Whether it says something about the name.
    var isWord: Bool {
      switch self {
      case .addresses, .noData, .noName: true
      case .notListed, .failure: false
      }
    }
  }

  /// An opinion.
  package init(_ who: Who, _ type: RecordType, took: Duration, _ outcome: Outcome) {
    self.who = who
    self.type = type
    self.took = took
    self.outcome = outcome
  }
}

/// How a plain resolver's word compares with the providers'.
package enum Verdict: Hashable, Sendable {
  /// A provider's word: what the others are compared with.
  case reference
  /// The providers say the same, or share an address with it.
  case agrees
  /// Nothing to compare with, or no answer.
  case unknown
  /// Other addresses than any provider's; that is usual where a service answers by region, too.
  case differs
  /// A public name has a private or sinkhole address.
  case privateAddress
  /// Every provider says that there is no such name, and this one has addresses for it.
  case invented
  /// The providers have addresses, and this one says that there are none.
  case denied

  /// Whether it looks like a hijack.
  package var isSuspicious: Bool {
    switch self {
    case .privateAddress, .invented, .denied, .differs: true
    case .reference, .agrees, .unknown: false
    }
  }

  /// Compares one opinion with all others about the same family.
  package init(of opinion: Opinion, among all: [Opinion]) {
    if case .provider = opinion.who {
      self = .reference
      return
    }
    let providers = all.filter { other in
      if case .provider = other.who { other.type == opinion.type } else { false }
    }.map(\.outcome)
    let known = Set(providers.flatMap(\.addresses))
    let denials = providers.count { $0 == .noName }
    let hasWord = providers.contains(where: \.isWord)
    switch opinion.outcome {
    case .failure, .notListed: self = .unknown
    case _ where !hasWord: self = .unknown
    case .addresses(let addresses, _):
      if !known.isDisjoint(with: addresses) {
        self = .agrees
      } else if known.isEmpty {
        self = denials > 0 ? .invented : .differs
      } else if addresses.contains(where: Verdict.isPrivate), !known.contains(where: Verdict.isPrivate) {
        self = .privateAddress
      } else {
        self = .differs
      }
    case .noData, .noName: self = known.isEmpty ? .agrees : .denied
    }
  }

  private static func isPrivate(_ address: IPAddress) -> Bool { RebindFilter.isPrivate(address.octets) }
}

extension Resolver {
  package func opinions(on name: DomainName, _ types: [RecordType]) async -> [Opinion] {
    var tasks: [Task<Opinion, Never>] = []
    for type in types {
      let question = HTTPDNSQuestion(name: name, type: type)
      for provider in upstreams.filter({ $0.serves(question) }).map(\.name) {
        tasks.append(Task(executorPreference: loop) { await self.opinion(of: provider, on: question) })
      }
      for server in local?.addresses ?? [] {
        tasks.append(Task(executorPreference: loop) { await self.opinion(ofResolver: server, on: question) })
      }
    }
    var opinions: [Opinion] = []
    for task in tasks { opinions.append(await task.value) }
    return opinions
  }

  private func opinion(of name: String, on question: HTTPDNSQuestion) async -> Opinion {
    let began = BootInstant.now
    let result = await answer(question, of: name)
    return Opinion(.provider(name), question.type, took: .now - began, Opinion.Outcome(result, question.type))
  }

  private func opinion(ofResolver server: SocketAddress, on question: HTTPDNSQuestion) async -> Opinion {
    let began = BootInstant.now
    let servers = LocalServers([.address(server)])
    let result = await local?.ask(question, servers, timeout: settings.localTimeout)
    return Opinion(
      .localDNS(server.description), question.type, took: .now - began,
      Opinion.Outcome(result ?? .failure(.noServer), question.type))
  }

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
      return ResolvedAnswer(response: finished.response, lifetime: finished.lifetime, source: source)
    }
  }

  private func answer(
    _ question: HTTPDNSQuestion, of provider: String
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    guard let upstream = upstreams.first(where: { $0.name == provider }) else { return .failure(.noServer) }
    var question = question
    question.clientSubnet = upstream.subnet(for: nil)
    return await upstream.ask(question, deadline: loop.now + ResolverSettings.answerBy, isLastResort: true)
  }
}

extension Opinion.Outcome {
  init(_ result: Result<UpstreamAnswer, UpstreamFailure>, _ type: RecordType) {
    switch result {
    case .failure(.notListed): self = .notListed
    case .failure(let failure): self = .failure(failure.reason)
    case .success(let reply):
      let records = reply.answer.answers.filter { $0.type == type }
      let addresses = records.compactMap { IPAddress(octets: $0.rdata) }
      if !addresses.isEmpty {
        self = .addresses(addresses, ttl: records.map(\.ttl).min() ?? 0)
      } else {
        switch reply.answer.responseCode {
        case .noError: self = reply.answer.isEmptyAmbiguous ? .notListed : .noData
        case .nxDomain: self = .noName
        case let code: self = .failure(UpstreamFailure.refused(code, by: reply.server).reason)
        }
      }
    }
  }
}
