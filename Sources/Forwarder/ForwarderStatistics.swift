// ForwarderStatistics.swift -- all numbers of a running forwarder at one moment, as a value.

import EventLoop
import Frontend
import Listener
import MessageCache
import Resolver
import Telemetry
import Upstreams

/// What a forwarder has done so far and how it stands. The difference of two readings is what happened between them.
package struct ForwarderStatistics: Sendable {
  /// When it was read.
  package var time: BootInstant
  /// Since when the forwarder counts.
  package var startedAt: BootInstant
  /// Queries: their fates, response codes and types, and how long answers took; over all threads and reloads.
  package var queries: QueryTotals
  /// The cold path.
  package var resolver: ResolverCounters
  /// Questions under way upstream at present.
  package var questionsUnderWay: Int
  /// Questions that may be under way at once: `listen.max_in_flight`.
  package var mostQuestionsUnderWay: Int
  /// Clients that wait for an answer at present.
  package var waitingClients: Int
  /// Refreshing; nil where nothing is kept.
  package var refresh: RefreshCounters?
  /// Questions that are scheduled for refreshing, some of which may have been replaced since.
  package var scheduledRefreshes: Int
  /// The cache.
  package var cache: CacheStatistics
  /// Octets that wait in the UDP sockets to be received; nil where the kernel does not tell.
  package var unreadOctets: Int?
  /// Datagrams so far that the kernel dropped because a UDP socket was full; nil where the kernel does not tell.
  package var droppedDatagrams: Int?
  /// TCP connections at present.
  package var tcpConnections: Int
  /// TCP connections so far that were closed on arrival because there were too many.
  package var refusedTCPConnections: UInt64
  /// Clients' TCP connections that were closed for a newcomer.
  package var displacedTCPConnections: UInt64 = 0
  /// Queries over TCP so far that were put off, since their client sent more than `listen.rate_limit`.
  package var delayedTCPQueries: UInt64 = 0
  /// The providers, in the order of the configuration.
  package var providers: [ProviderReport]

  /// A reading of those numbers.
  package init(
    time: BootInstant, startedAt: BootInstant, queries: QueryTotals, resolver: ResolverCounters, questionsUnderWay: Int,
    mostQuestionsUnderWay: Int, waitingClients: Int, refresh: RefreshCounters?, scheduledRefreshes: Int,
    cache: CacheStatistics, unreadOctets: Int?, droppedDatagrams: Int?, tcpConnections: Int,
    refusedTCPConnections: UInt64, providers: [ProviderReport]
  ) {
    self.time = time
    self.startedAt = startedAt
    self.queries = queries
    self.resolver = resolver
    self.questionsUnderWay = questionsUnderWay
    self.mostQuestionsUnderWay = mostQuestionsUnderWay
    self.waitingClients = waitingClients
    self.refresh = refresh
    self.scheduledRefreshes = scheduledRefreshes
    self.cache = cache
    self.unreadOctets = unreadOctets
    self.droppedDatagrams = droppedDatagrams
    self.tcpConnections = tcpConnections
    self.refusedTCPConnections = refusedTCPConnections
    self.providers = providers
  }

  /// Since when it counts, until the reading.
  package var uptime: Duration { time - startedAt }
}

/// Reads the numbers of a forwarder. To be called on the resolver's loop, while that runs.
///
/// The counters of queries belong to it: whatever a reload replaces, they go on.
package final class StatisticsSource: @unchecked Sendable {
  /// What it reads beside its own counters.
  struct Parts {
    var resolver: Resolver
    var cache: MessageCache
    var queries: ClientQueries
    var connections: TCPConnectionTable
    var mostQuestionsUnderWay: Int
    var delayedQueries: () -> UInt64
    /// Sends what could not be answered at once.
    var outbox: UDPOutbox
  }

  /// Those of queries over TCP.
  let tcp = QueryCounters()
  /// Those of queries that had to wait.
  let waiting = QueryCounters()
  private let startedAt = BootInstant.now
  private var listeners: [QueryCounters] = []
  private var sockets: [UDPSocket] = []
  private var parts: Parts?

  init() {}

  /// Counters for one more listener thread; made before the threads run.
  func makeListener() -> QueryCounters {
    let counters = QueryCounters()
    listeners.append(counters)
    return counters
  }

  /// What is read from now on.
  func follow(_ parts: Parts) { self.parts = parts }

  /// The UDP sockets that are read from now on.
  func follow(_ sockets: [UDPSocket]) { self.sockets = sockets }

  /// All numbers of this moment; it takes some microseconds for each thread and each provider.
  package func read() -> ForwarderStatistics {
    guard let parts else { preconditionFailure("read before the forwarder was made") }
    let now = BootInstant.now
    let backlogs = sockets.compactMap(\.backlog)
    let delayed = parts.delayedQueries()
    return parts.resolver.assumeIsolated { resolver in
      var statistics = ForwarderStatistics(
        time: now, startedAt: startedAt, queries: totals, resolver: resolver.counters,
        questionsUnderWay: resolver.questionsUnderWay, mostQuestionsUnderWay: parts.mostQuestionsUnderWay,
        waitingClients: parts.queries.inUse, refresh: resolver.refreshing?.counters,
        scheduledRefreshes: resolver.refreshing?.scheduled ?? 0, cache: parts.cache.statistics,
        unreadOctets: backlogs.isEmpty ? nil : backlogs.reduce(0) { $0 + $1.octets },
        droppedDatagrams: backlogs.isEmpty ? nil : backlogs.reduce(0) { $0 + $1.dropped },
        tcpConnections: parts.connections.count, refusedTCPConnections: parts.connections.refused,
        providers: resolver.providerReports())
      statistics.displacedTCPConnections = parts.connections.displaced
      statistics.delayedTCPQueries = delayed
      return statistics
    }
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
