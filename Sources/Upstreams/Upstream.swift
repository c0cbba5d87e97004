// Upstream.swift -- the protocols through which the resolver uses providers and LocalDNS.

import Configuration
import DNSWire
import EventLoop
import FairShares
import HTTPClient
import HTTPDNS
import LocalDNS
import Refresh

/// The source of an answer, for human-readable output.
package enum AnswerSource: Sendable, Equatable {
  /// A provider: its name in the configuration and the server that replied.
  case provider(String, server: String)
  /// Another daemon's answer of a provider, from the store that the fleet shares.
  case fleet(provider: String)
  /// A plain resolver: the server that replied.
  case localDNS(server: String)
  /// The cache, with fresh or stale data.
  case cache
  /// The daemon itself.
  case ourselves
}

extension AnswerSource {
  package var isProvider: Bool { if case .provider = self { true } else { false } }
  package var isLocalDNS: Bool { if case .localDNS = self { true } else { false } }
  /// The provider's server that replied; nil for other sources.
  package var server: String? {
    guard case .provider(_, let server) = self, !server.isEmpty else { return nil }
    return server
  }
}

/// An answer and the server that sent it.
package struct UpstreamAnswer: Sendable {
  /// The answer to the question that was asked.
  package var answer: HTTPDNSAnswer
  /// The address or name of the server, human-readable.
  package var server: String
  /// Answers to other questions in the same response.
  package var others: [(question: HTTPDNSQuestion, answer: HTTPDNSAnswer)] = []
  /// Whether it is a negative answer of a plain resolver that stands behind one without an answer.
  package var isOutOfOrder = false
  /// Whether a plain resolver could not send all of it.
  package var isTruncated = false
}

extension UpstreamAnswer {
  /// The same after some time, with what is left of its TTLs: every second that has begun counts.
  func aged(by time: Duration) -> UpstreamAnswer {
    let seconds = UInt32(clamping: (time.nanoseconds + 999_999_999) / 1_000_000_000)
    var aged = self
    for index in aged.answer.answers.indices {
      aged.answer.answers[index].ttl -= min(aged.answer.answers[index].ttl, seconds)
    }
    return aged
  }
}

/// What carries a question to a provider, for the question. Resolver's loop only.
package protocol QuestionCarrier: AnyObject {
  /// Whether it waits for a connection, because of other questions.
  var isQueued: Bool { get }
  /// Another client waits for the question as well.
  func isJoined(by client: ClientKey)
  /// The clients of the question have been answered: it ends at once if it waits, and if its place is needed.
  func isLate()
}

/// A question that is in flight, as an upstream sees it. Resolver's loop only.
package protocol QuestionInFlight: AnyObject {
  /// The client that asked first, or the daemon itself.
  var client: ClientKey { get }
  /// The registered domain of the name.
  var domain: DomainKey { get }
  /// When the client asked.
  var startedAt: BootInstant { get }
  /// Whether another server may be asked after a failure.
  var isWanted: Bool { get }
  /// Whether its clients have been answered, and it has left its place to others.
  var hasNoClients: Bool { get }
  /// Something carries it from now on.
  func isCarried(by carrier: any QuestionCarrier)
  /// It has ended.
  func wasCarried(by carrier: any QuestionCarrier)
  /// A carrier that waited has got a connection: the time before was not the provider's.
  func gotConnection()
}

extension QuestionInFlight {
  /// As many clients beside the first one have a turn of their own while it waits for a connection.
  package static var mostOthers: Int { CarriedClients.most }
  /// The client's share of the connections.
  package var clientShare: UInt64 { client.value }
  /// The domain's share of the client's.
  package var domainShare: UInt64 { domain.value }
}

/// A question that no client waits for: a refresh, or one for the operator.
package final class OwnQuestion: QuestionInFlight {
  package let client = ClientKey.ourselves
  package let domain: DomainKey
  package let startedAt: BootInstant
  package let isWanted = true
  package let hasNoClients = false

  package init(_ name: DomainName, now: BootInstant) {
    domain = DomainKey(of: name)
    startedAt = now
  }

  package func isCarried(by carrier: any QuestionCarrier) {}
  package func wasCarried(by carrier: any QuestionCarrier) {}
  package func gotConnection() {}
}

/// What the configuration and the dialect say about an upstream. By default it can do, and is trusted with, nothing.
package struct UpstreamTraits: Sendable {
  /// Whether the daemon passes the provider's AD bit on to clients.
  package var trustsAD = false
  /// Whether requests can carry DO and CD.
  package var knowsDNSSECFlags = false
  /// The timeout of one attempt.
  package var timeout: Duration
  /// The client subnet to send.
  package var clientSubnet = Configuration.ClientSubnet.none
  /// The maximum number of client subnets per name; 0 for no limit.
  package var subnetsPerName = 0
  /// Whether it answers from memory, so that refreshing before expiry gains nothing.
  package var answersAtOnce = false
  /// The cost of a transfer in the refresh budget.
  package var refreshPrice = RefreshPrice.free
  /// The maximum number of names in one transfer, each in both address families; 0 if every question needs its own.
  package var mostNames = 0
  /// What an ambiguous empty answer may mean, human-readable.
  package var ambiguity = UpstreamTraits.usualAmbiguity
  /// Which address families a transfer of several questions has.
  package var families = TransferFamilies.wanted

  /// What an ambiguous empty answer means with most kinds.
  package static let usualAmbiguity = "an empty answer; the name may not be in the list of the provider's account"
}

/// How an upstream currently answers.
package struct UpstreamPace: Sendable {
  /// Whether it gives no verdicts, so that questions wait for it for `shortPatience` only.
  package var isSilent = false
  /// No other upstream is asked beside it before that time, and no held answer of LocalDNS is given.
  package var shortPatience = Duration.zero
  /// When it gave its verdicts.
  package var verdicts = VerdictTimes()

  /// Its verdicts come at once.
  package static let prompt = UpstreamPace()
}

/// A provider as the resolver sees it.
package protocol Upstream: AnyObject {
  /// Its name in the configuration.
  var name: String { get }
  var traits: UpstreamTraits { get }
  var pace: UpstreamPace { get }
  /// The median round-trip time of its replies; nil if it is not known.
  var medianRoundTrip: Duration? { get }
  /// Its state, in human-readable values.
  var report: ProviderReport { get }
  /// Whether the dialect can carry the question.
  func serves(_ question: HTTPDNSQuestion) -> Bool
  /// Whether background work may ask it the question: the dialect can carry it, and the provider can be reached, does not
  /// pause, is within its budget, and has not lately said that it does not list the name.
  func isFit(for question: HTTPDNSQuestion) -> Bool
  /// Why other upstreams go first for the question: the time for checking its certificates is not known, or its remaining
  /// units are reserved for names in use. Nil if it may be asked.
  ///
  /// Such a question counts as refused. Without the time it is sent in the background, since the response reports the time.
  ///
  /// - Parameters:
  ///   - mayFallBack: whether LocalDNS is asked otherwise.
  ///   - isInUse: whether clients use the name, which is in the cache.
  func reasonToSkip(_ question: HTTPDNSQuestion, mayFallBack: Bool, isInUse: () -> Bool) -> UpstreamFailure?
  /// Asks the servers in order until one gives a verdict or `deadline` is near.
  ///
  /// - Parameters:
  ///   - asking: the question in flight, whose client shares connections and places with others.
  ///   - isLastResort: whether no other upstream is left; a provider that cannot be reached is then waited for.
  func ask(
    _ question: HTTPDNSQuestion, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure>
  /// Asks one server once, with all questions in one transfer. `mostNames` limits the number of names.
  func refresh(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure>
  /// Forgets which of these names it does not list; returns the number of forgotten names and types.
  func forgetNotListed(_ names: NameSelection) -> Int
  /// Tells `observer` about its transfers from now on, and calls `onRecovery` on the resolver's loop at its first verdict after
  /// a silence.
  func follow(by observer: any TransferObserver, onRecovery: @escaping () -> Void)
}

/// A provider as the configuration and the network change it.
package protocol ConfiguredUpstream: Upstream {
  /// The known addresses of its servers.
  var serverAddresses: [IPAddress] { get }
  /// What it has counted. After a reload, the provider of the same name continues it.
  var counters: SharedProviderCounters { get }
  /// Starts background work. Called when the daemon begins to serve, and again after each reload.
  func start()
  /// Discards connections and failures after a change of network.
  func networkHasChanged()
  /// Adds up its units with those of the other daemons of a fleet; nil for its own alone.
  func share(units: (any UnitSharing)?)
  /// Takes it out of service after a reload has removed or changed it. Transfers in flight finish; background work
  /// stops. `heir` has the same name in the new configuration; nil without such an upstream.
  func retire(for heir: (any ConfiguredUpstream)?)
}

extension Configuration.ClientSubnet {
  /// The subnet to send for a client's subnet; nil to send none.
  package func subnet(for client: IPPrefix?) -> IPPrefix? {
    switch self {
    case .none: nil
    case .fixed(let prefix): prefix
    case .fromClient: client
    }
  }
}

extension Upstream {
  package var trustsAD: Bool { traits.trustsAD }
  package var knowsDNSSECFlags: Bool { traits.knowsDNSSECFlags }
  package var timeout: Duration { traits.timeout }
  package var subnetsPerName: Int { traits.subnetsPerName }
  package var answersAtOnce: Bool { traits.answersAtOnce }
  package var refreshPrice: RefreshPrice { traits.refreshPrice }
  package var mostNames: Int { traits.mostNames }

  /// Whether it receives the clients' own subnets.
  package var passesClientSubnet: Bool { traits.clientSubnet == .fromClient }

  /// The client subnet to send for a client's subnet; nil to send none.
  package func subnet(for client: IPPrefix?) -> IPPrefix? { traits.clientSubnet.subnet(for: client) }
}

/// Observes the transfers of a provider. Resolver's loop only.
package protocol TransferObserver: AnyObject {
  /// Called at the end of a transfer.
  ///
  /// - Parameter time: the duration of the transfer.
  func asked(_ asked: AskedQuestions, _ result: Result<ProviderReplies, UpstreamFailure>, time: Duration)
  /// Called for questions that were not sent: the provider is not asked now, or one of our own limits was reached.
  func wereRefusedHere(_ asked: AskedQuestions)
}

/// LocalDNS as an upstream.
package protocol LocalUpstream: AnyObject {
  /// Whether the list has any server to ask.
  func hasServers(_ servers: [Configuration.LocalServer]) -> Bool
  /// The current addresses of the configured resolvers.
  var addresses: [PlainResolver] { get }
  /// Asks the servers in order, within `timeout`.
  func ask(
    _ question: HTTPDNSQuestion, _ servers: [Configuration.LocalServer], timeout: Duration
  ) async -> Result<UpstreamAnswer, UpstreamFailure>
}
