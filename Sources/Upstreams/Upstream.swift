// Upstream.swift -- what the resolver knows of those it asks.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache

/// Who gave an answer, for people.
package enum AnswerSource: Sendable, Equatable {
  /// A provider, by its name in the configuration, and the server that replied.
  case provider(String, server: String)
  /// A plain resolver.
  case localDNS
  /// The cache.
  case cache
  /// This program itself.
  case ourselves
}

extension AnswerSource {
  /// Whether it is a provider.
  package var isProvider: Bool { if case .provider = self { true } else { false } }
  /// The provider's server that replied; nil for others.
  package var server: String? {
    guard case .provider(_, let server) = self, !server.isEmpty else { return nil }
    return server
  }
}

/// An answer and the server that gave it.
package struct UpstreamAnswer: Sendable {
  /// The answer.
  package var answer: HTTPDNSAnswer
  /// The server's address or name, for people.
  package var server: String
  /// Answers to other questions that came along.
  package var others: [(question: HTTPDNSQuestion, answer: HTTPDNSAnswer)]

  /// An answer from that server.
  package init(
    _ answer: HTTPDNSAnswer, server: String, others: [(question: HTTPDNSQuestion, answer: HTTPDNSAnswer)] = []
  ) {
    self.answer = answer
    self.server = server
    self.others = others
  }
}

/// A provider as the resolver sees it.
package protocol Upstream: AnyObject {
  /// Its name in the configuration.
  var name: String { get }
  /// Begins what goes on beside questions. Called when the daemon starts to serve, and again after a reload.
  func start()
  /// Whether its AD bit is passed on.
  var trustsAD: Bool { get }
  /// Whether it can be told of DO and CD.
  var knowsDNSSECFlags: Bool { get }
  /// How long one attempt may take.
  var timeout: Duration { get }
  /// The client subnet to send for a client's own one; nil to send none.
  func subnet(for client: IPPrefix?) -> IPPrefix?
  /// Whether it can carry the question at all.
  func serves(_ question: HTTPDNSQuestion) -> Bool
  /// Whether it should not be asked for a client while anybody else can, because no time is known to check its certificates
  /// by. It then asks the question for itself, since the response tells the time.
  func awaitsTime(toAsk question: HTTPDNSQuestion) -> Bool
  /// Asks one server after the other until one answers or `deadline` is near.
  ///
  /// - Parameters:
  ///   - isLastResort: whether there is nobody else to ask: then a provider that is down is asked all the same.
  ///   - isWanted: whether another server may be asked after one that has failed; called on the resolver's loop.
  func ask(
    _ question: HTTPDNSQuestion, deadline: BootInstant, isLastResort: Bool, isWanted: @escaping @Sendable () -> Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure>
  /// Why it should not be asked now for a name that was not in the cache before: what is left of its units is for others.
  /// Nil where it may be.
  func refusalOfNewNames() -> UpstreamFailure?
  /// Client subnets of one name that it is asked for; 0 for no bound.
  var subnetsPerName: Int { get }
  /// Whether it may be asked for what nobody waits for: neither down nor aside nor out of budget.
  var isFit: Bool { get }
  /// The addresses of its servers, as far as they are known.
  var serverAddresses: [IPAddress] { get }
  /// The machine is on another network: connections and failures of the old one do not count any more.
  func networkHasChanged()
  /// The configuration does not have it any more, in this form at least: it answers what is under way, and does nothing by
  /// itself. `heir` has its name from now on.
  func retire(for heir: (any Upstream)?)
  /// Forgets what it has said that it does not list, of those names; tells how many names and types that were.
  @discardableResult
  func forgetNotListed(_ names: CacheSelection) -> Int
  /// How it fares, for people.
  var report: ProviderReport { get }
  /// Names that are always kept fresh: it may be checked with one of them.
  func follow(keptNames: Set<DomainName>)
  /// Whom it tells that it has answered after it had failed; called on the resolver's loop.
  func tellRecovery(to told: @escaping () -> Void)
  /// Counts each question that a transfer carried, and those that were not sent.
  var observer: (any TransferObserver)? { get set }
  /// Whether it answers from memory: then nothing is gained by asking before an answer expires.
  var answersAtOnce: Bool { get }
  /// What a transfer costs of the budget of refreshing.
  var refreshPrice: RefreshPrice { get }
  /// Names that one transfer may carry, in both address families; 0 where each question travels alone.
  var mostNames: Int { get }
  /// Asks one server once, for all questions in one transfer; what several names need, `mostNames` allows.
  func refresh(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure>
}

extension Upstream {
  /// Asks one server after the other, for somebody who waits until the end.
  package func ask(
    _ question: HTTPDNSQuestion, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    await ask(question, deadline: deadline, isLastResort: isLastResort, isWanted: { true })
  }

  /// None, where there are no transfers.
  package var serverAddresses: [IPAddress] { [] }

  /// The configuration does not have it any more: nothing to do, where nothing else is said.
  package func retire(for heir: (any Upstream)?) {}

  /// The machine is on another network: connections and failures of the old one do not count any more.
  package func networkHasChanged() {}

  /// Forgets what it has said that it does not list: nothing is remembered, where nothing else is said.
  @discardableResult
  package func forgetNotListed(_ names: CacheSelection) -> Int { 0 }

  /// How it fares, for people.
  package var report: ProviderReport { ProviderReport(name: name) }

  /// Names that are always kept fresh: nothing to do, where it is not checked.
  package func follow(keptNames: Set<DomainName>) {}

  /// Whom it tells that it has answered after it had failed: nobody, where it cannot fail.
  package func tellRecovery(to told: @escaping () -> Void) {}

  /// Nobody, where there are no transfers.
  package var observer: (any TransferObserver)? {
    get { nil }
    set {}
  }

  /// Whether it may be asked for what nobody waits for.
  package var isFit: Bool { true }

  /// Why it should not be asked now for a name that was not in the cache before: nothing, where nothing else is said.
  package func refusalOfNewNames() -> UpstreamFailure? { nil }

  /// Client subnets of one name that it is asked for: any number, where nothing else is said.
  package var subnetsPerName: Int { 0 }

  /// Whether it answers from memory.
  package var answersAtOnce: Bool { false }

  /// Whether it can be told of DO and CD.
  package var knowsDNSSECFlags: Bool { true }

  /// What a transfer costs of the budget of refreshing: nobody is billed, where nothing else is said.
  package var refreshPrice: RefreshPrice { .free }

  /// Names that one transfer may carry, in both address families; 0 where each question travels alone.
  package var mostNames: Int { 0 }

  /// Asks one server once for each question of one transfer.
  package func refresh(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure> {
    var answers: [HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>] = [:]
    for question in questions { answers[question] = await ask(question, deadline: deadline, isLastResort: false) }
    return .success(answers)
  }

  /// Begins what goes on beside questions. Called when the daemon starts to serve, and again after a reload.
  package func start() {}

  /// Whether it should not be asked for a client while anybody else can: never, where nothing else is said.
  package func awaitsTime(toAsk question: HTTPDNSQuestion) -> Bool { false }
}

/// Sees what came of the transfers of a provider. Resolver's loop only.
package protocol TransferObserver: AnyObject {
  /// A transfer has ended.
  ///
  /// - Parameter time: since it began.
  func asked(_ asked: AskedQuestions, _ outcome: Result<ProviderReplies, TransferFailure>, time: Duration)
  /// Nothing was sent: the provider is not used at the moment, or a limit of ours was reached.
  func wereRefusedHere(_ asked: AskedQuestions)
}

/// LocalDNS as the resolver sees it.
package protocol LocalUpstream: AnyObject {
  /// Whether there is a server to ask.
  func hasServers(_ servers: LocalServers) -> Bool
  /// The resolvers of the configuration, as they are at present.
  var addresses: [SocketAddress] { get }
  /// Asks one server after the other within `timeout`.
  func ask(
    _ question: HTTPDNSQuestion, _ servers: LocalServers, timeout: Duration
  ) async -> Result<UpstreamAnswer, UpstreamFailure>
}
