// ForwarderStatistics.swift -- all statistics of a running forwarder at one moment, as a value.

import EventLoop
import FirewallSets
import Fleet
import Frontend
import ListStore
import Listener
import LocalDNS
import MessageCache
import Ranking
import Refresh
import Resolver
import Telemetry
import Upstreams

/// The counters and the current state of a forwarder. The difference of two readings covers the time between them.
package struct ForwarderStatistics: Sendable {
  /// When the values were read.
  package var time: BootInstant
  /// When the forwarder began to count.
  package var startedAt: BootInstant
  /// Queries: their fates, response codes, types and latencies, over all threads and reloads.
  package var queries: QueryTotals
  /// The names of the rules that `queries` counts.
  package var rules = RuleNames()
  package var resolver: ResolverCounters
  /// Questions that are currently in flight upstream.
  package var questionsInFlight: Int
  /// Questions that may be in flight at once: `listen.max_in_flight`.
  package var maxQuestionsInFlight: Int
  /// Clients that currently wait for an answer.
  package var waitingClients: Int
  /// The counters of refreshing; nil if the cache is off.
  package var refresh: RefreshCounters?
  /// What ranking does; nil if the cache is off.
  package var ranking: RankingReport?
  /// The store that daemons share; nil without one.
  package var fleet: FleetReport?
  /// Questions that are scheduled for a refresh, some of which may have been replaced since.
  package var scheduledRefreshes: Int
  package var cache: CacheStatistics
  /// Octets that wait in the UDP sockets; nil if the kernel does not report them.
  package var unreadOctets: Int?
  /// Datagrams so far that the kernel dropped because a UDP socket was full; nil if the kernel does not report them.
  package var droppedDatagrams: Int?
  /// Clients' TCP connections that are open.
  package var tcpConnections: Int
  /// TCP connections so far that were closed on arrival because there were too many.
  package var refusedTCPConnections: UInt64
  /// Clients' TCP connections so far that were closed to make room for a new one.
  package var displacedTCPConnections: UInt64 = 0
  /// The encrypted listeners; nil without any.
  package var encrypted: EncryptedReport?
  /// The counters of the client that queries LocalDNS.
  package var localDNS = LocalDNSCounters()
  /// The lists of rules, in the order of the configuration.
  package var lists: [ListReport] = []
  /// The firewall sets of rules.
  package var sets: [SetStatus] = []
  /// The providers, in the order of the configuration.
  package var providers: [ProviderReport]

  /// Time from `startedAt` to the reading.
  package var uptime: Duration { time - startedAt }
}

/// What the encrypted listeners have done, and their certificate.
package struct EncryptedReport: Sendable {
  package var totals: EncryptedTotals
  /// The last second of the certificate in use, in seconds since 1970; nil without one.
  package var certificateEnd: Int64?
}

/// Reads the statistics of a forwarder. Call it on the resolver's loop, while that runs.
///
/// The counters of queries belong to it, so a reload does not reset them.
package final class StatisticsSource {
  /// The objects that it reads in addition to its own counters.
  struct Parts {
    var resolver: Resolver
    var cache: MessageCache
    var queries: ClientQueries
    var connections: TCPConnectionTable
    var localClient: LocalDNSClient
    var maxQuestionsInFlight: Int
    var lists: () -> [ListReport]
    var sets: () -> [SetStatus]
    var encrypted: () -> EncryptedReport?
    /// Sends the UDP responses that could not be given at once.
    var outbox: UDPOutbox
  }

  /// The counters of queries over TCP.
  let tcp = QueryCounters()
  /// The counters of queries that had to wait.
  let waiting = QueryCounters()
  private let startedAt = BootInstant.now
  private var listeners: [QueryCounters] = []
  private var sockets: [UDPSocket] = []
  private var parts: Parts?
  /// The names of the rules in use and of earlier ones.
  var rules = RuleNames()

  init() {}

  /// Makes the counters of one more listener thread. Call it before the threads run.
  func makeListener() -> QueryCounters {
    let counters = QueryCounters()
    listeners.append(counters)
    return counters
  }

  /// Sets the objects to read.
  func follow(_ parts: Parts) { self.parts = parts }

  /// Sets the UDP sockets to read.
  func follow(_ sockets: [UDPSocket]) { self.sockets = sockets }

  /// Reads all statistics; takes some microseconds for each thread and each provider.
  package func read() -> ForwarderStatistics {
    guard let parts else { preconditionFailure("read before the forwarder was made") }
    let now = BootInstant.now
    let backlogs = sockets.compactMap(\.backlog)
    let (counters, questions, refreshing, ranking, fleet, providers) = parts.resolver.assumeIsolated {
      ($0.counters, $0.questionsInFlight, $0.refreshing, $0.ranking, $0.fleetReport, $0.providerReports())
    }
    return ForwarderStatistics(
      time: now, startedAt: startedAt, queries: totals, rules: rules, resolver: counters, questionsInFlight: questions,
      maxQuestionsInFlight: parts.maxQuestionsInFlight, waitingClients: parts.queries.inUse,
      refresh: refreshing?.counters, ranking: ranking, fleet: fleet, scheduledRefreshes: refreshing?.scheduled ?? 0,
      cache: parts.cache.statistics,
      unreadOctets: backlogs.isEmpty ? nil : backlogs.reduce(0) { $0 + $1.octets },
      droppedDatagrams: backlogs.isEmpty ? nil : backlogs.reduce(0) { $0 + $1.dropped },
      tcpConnections: parts.connections.count, refusedTCPConnections: parts.connections.refused,
      displacedTCPConnections: parts.connections.displaced, encrypted: parts.encrypted(),
      localDNS: parts.localClient.counters, lists: parts.lists(), sets: parts.sets(), providers: providers)
  }

  private var totals: QueryTotals {
    var totals = QueryTotals()
    for counters in listeners + [tcp] {
      counters.add(to: &totals)
      totals.atHand = totals.atHand + counters.durations
    }
    waiting.add(to: &totals)
    totals.resolved = waiting.durations
    totals.unsent &+= parts?.outbox.refused ?? 0
    return totals
  }
}
