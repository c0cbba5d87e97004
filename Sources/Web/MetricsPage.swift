// MetricsPage.swift -- writes all metrics for Prometheus. No label holds a domain name or the address of a client.

import Forwarder
import Frontend
import LocalDNS
import MessageCache
import Ranking
import Refresh
import Resolver

/// The page for one scrape.
struct MetricsPage {
  static let contentType = Exposition.contentType
  var octets: [UInt8] { page.octets }
  private var page = Exposition()

  init(_ statistics: ForwarderStatistics, _ process: ProcessNumbers, version: String) {
    page.gauge("httpdnsd_build_info", "The program's version; always 1.") {
      $0.add(1, [MetricLabel("version", version)])
    }
    write(statistics.queries, statistics.rules)
    write(sockets: statistics)
    if let encrypted = statistics.encrypted { page.write(encrypted) }
    write(statistics.resolver, statistics)
    write(statistics.cache)
    if !statistics.lists.isEmpty { page.write(lists: statistics.lists) }
    if !statistics.sets.isEmpty { page.write(sets: statistics.sets) }
    if let ranking = statistics.ranking { write(ranking.counters) }
    if let refresh = statistics.refresh { write(refresh, scheduled: statistics.scheduledRefreshes) }
    page.write(providers: statistics.providers)
    if let fleet = statistics.fleet { page.write(fleet, statistics.providers) }
    write(process)
  }

  private mutating func write(_ queries: QueryTotals, _ rules: RuleNames) {
    page.counter("httpdnsd_queries_total", "Queries, by outcome.") { samples in
      for transport in QueryTransport.allCases {
        for fate in QueryFate.allCases {
          samples.add(
            queries.count(fate, over: transport),
            [MetricLabel("transport", transport.word), MetricLabel("outcome", fate.word)])
        }
      }
    }
    page.counter("httpdnsd_questions_total", "Valid queries, by QTYPE.") {
      $0.add(by: "type", CountedType.allCases.map { ($0.word, queries.count($0)) })
    }
    page.counter("httpdnsd_responses_total", "Responses, by RCODE.") {
      $0.add(by: "rcode", CountedCode.allCases.map { ($0.word, queries.count($0)) })
    }
    if !rules.names.isEmpty {
      page.counter("httpdnsd_rule_queries_total", "Queries that a rule has decided, by its name or its number.") {
        $0.add(by: "rule", zip(rules.names, queries.rules).map { ($0, $1) })
      }
    }
    page.histogram(
      "httpdnsd_response_duration_seconds",
      "Time from a query to its answer: hot without the resolver, cold through the resolver.",
      [([MetricLabel("path", "hot")], queries.atHand), ([MetricLabel("path", "cold")], queries.resolved)])
  }

  private mutating func write(sockets statistics: ForwarderStatistics) {
    page.counter(
      "httpdnsd_udp_unsent_responses_total", "UDP responses that the kernel did not accept.",
      statistics.queries.unsent
    )
    if let octets = statistics.unreadOctets {
      page.gauge(
        "httpdnsd_udp_receive_queue_bytes", "Octets that wait in the receive buffers of the UDP sockets.", octets)
    }
    if let dropped = statistics.droppedDatagrams {
      page.counter(
        "httpdnsd_udp_receive_drops_total", "Datagrams that the kernel dropped because a UDP socket was full.", dropped)
    }
    page.gauge("httpdnsd_tcp_connections", "Clients' TCP connections.", statistics.tcpConnections)
    page.counter(
      "httpdnsd_tcp_connections_refused_total",
      "TCP connections that were closed on arrival because there were too many.",
      statistics.refusedTCPConnections)
    page.counter(
      "httpdnsd_tcp_connections_displaced_total",
      "TCP connections that were closed to make room for a new one.",
      statistics.displacedTCPConnections)
    page.counter(
      "httpdnsd_delayed_queries_total", "Queries that were delayed because their client exceeded listen.rate_limit."
    ) {
      $0.add(
        by: "transport", QueryTransport.streams.map { ($0.word, statistics.queries.countDelayed(over: $0)) })
    }
  }

  private mutating func write(_ resolver: ResolverCounters, _ statistics: ForwarderStatistics) {
    page.gauge("httpdnsd_questions_in_flight", "Questions in flight upstream.", statistics.questionsInFlight)
    page.gauge(
      "httpdnsd_questions_in_flight_limit", "listen.max_in_flight of the configuration.",
      statistics.maxQuestionsInFlight)
    page.gauge("httpdnsd_waiting_clients", "Queries that wait for an answer from upstream.", statistics.waitingClients)
    page.counter("httpdnsd_upstream_questions_total", "Questions that the resolver fetched.", resolver.fetches)
    page.counter(
      "httpdnsd_upstream_failures_total", "Questions that ended without an answer or stale data.", resolver.failures)
    page.counter(
      "httpdnsd_upstream_overflows_total", "Queries that were refused because too many questions were in flight.",
      resolver.overflows)
    page.counter(
      "httpdnsd_limited_queries_total", "Queries beyond their client's or domain's share, by limit and result."
    ) { samples in
      for limit in ShareLimit.allCases {
        for (result, isStale) in [("servfail", false), ("stale", true)] {
          samples.add(
            resolver.shares.count(limit, stale: isStale),
            [MetricLabel("limit", limit.word), MetricLabel("result", result)])
        }
      }
    }
    page.counter(
      "httpdnsd_displaced_questions_total",
      "Questions that lost their place upstream to a client or domain with fewer.",
      resolver.shares.displaced)
    page.counter(
      "httpdnsd_surplus_subnets_total",
      "Queries answered without their client subnet because their name has subnets_per_name of them.",
      resolver.surplusSubnets)
    page.counter(
      "httpdnsd_duplicate_queries_total", "Identical queries that arrived while the first one waited.",
      resolver.duplicates)
    page.counter("httpdnsd_joined_queries_total", "Queries that joined an equal question in flight.", resolver.joined)
    page.counter("httpdnsd_stale_answers_total", "Answers with stale data from the resolver.", resolver.stale)
    page.counter(
      "httpdnsd_fallback_answers_total", "Questions that LocalDNS answered instead of a provider.",
      resolver.local.fallbacks)
    page.counter("httpdnsd_localdns_questions_total", "Questions sent to LocalDNS.", resolver.local.questions)
    page.counter("httpdnsd_localdns_failures_total", "Questions that LocalDNS did not answer.", resolver.local.failures)
    page.histogram(
      "httpdnsd_localdns_round_trip_seconds", "Round-trip times of LocalDNS's answers.",
      [([], resolver.local.roundTrips)])
    write(statistics.localDNS)
  }

  private mutating func write(_ local: LocalDNSCounters) {
    page.counter("httpdnsd_localdns_queries_total", "Queries to LocalDNS, without retransmissions.") {
      $0.add(by: "transport", [("udp", local.datagramQueries), ("tcp", local.streamQueries)])
    }
    page.counter(
      "httpdnsd_localdns_ignored_replies_total", "Replies with a wrong ID or question: spoofed or late.",
      local.ignoredReplies)
    page.counter("httpdnsd_localdns_timeouts_total", "LocalDNS servers that did not respond in time.", local.timeouts)
    page.counter(
      "httpdnsd_localdns_demotions_total", "Silent LocalDNS servers that were moved behind the others.", local.demotions
    )
  }

  private mutating func write(_ cache: CacheStatistics) {
    page.gauge("httpdnsd_cache_entries", "Entries in the cache, including expired ones.", cache.entries)
    page.gauge("httpdnsd_cache_entries_limit", "cache.max_entries of the configuration.", cache.maxEntries)
    page.gauge("httpdnsd_cache_bytes", "Memory of the cache.", cache.octets)
    page.gauge("httpdnsd_cache_limit_bytes", "cache.max_bytes of the configuration.", cache.maxOctets)
    page.counter("httpdnsd_cache_insertions_total", "Responses stored.", cache.insertions)
    page.counter("httpdnsd_cache_evictions_total", "Entries removed to make room.", cache.evictions)
  }

  private mutating func write(_ ranking: RankingCounters) {
    page.counter("httpdnsd_probes_total", "Probes of addresses, by kind and result.") { samples in
      let results = [("answered", ranking.answered), ("failed", ranking.failed), ("unknown", ranking.unknown)]
      for (result, kinds) in results {
        for kind in ["icmp", "tcp"] {
          samples.add(kinds[kind] ?? 0, [MetricLabel("kind", kind), MetricLabel("result", result)])
        }
      }
    }
    page.counter(
      "httpdnsd_probes_deferred_total", "Probes put off because of ranking.probes_per_minute.", ranking.deferred)
    page.counter("httpdnsd_address_reports_total", "Reports of programs about addresses.") {
      $0.add(
        by: "result",
        [("ok", ranking.goodReports), ("failed", ranking.badReports), ("not_answered", ranking.unknownReports)])
    }
    page.counter(
      "httpdnsd_rearranged_answers_total", "Cached answers whose addresses were put in another order.",
      ranking.rearranged)
  }

  private mutating func write(_ refresh: RefreshCounters, scheduled: Int) {
    page.gauge("httpdnsd_refresh_scheduled", "Questions scheduled for a check before they expire.", scheduled)
    page.counter("httpdnsd_refresh_transfers_total", "Transfers for refreshing.", refresh.transfers)
    page.counter("httpdnsd_refresh_answers_total", "Questions refreshed.", refresh.answers)
    page.counter("httpdnsd_refresh_failures_total", "Questions whose refresh failed.", refresh.failures)
    page.counter(
      "httpdnsd_refresh_over_budget_total", "Transfers not made because the refresh budget was used up.",
      refresh.overBudget)
  }

  private mutating func write(_ process: ProcessNumbers) {
    page.counter("process_cpu_seconds_total", "User and system CPU time in seconds.") { $0.add(process.cpuSeconds) }
    if let time = process.startTime {
      page.gauge("process_start_time_seconds", "Start time of the process since the Unix epoch in seconds.") {
        $0.add(time)
      }
    }
    if let octets = process.residentOctets { page.gauge("process_resident_memory_bytes", "Resident memory.", octets) }
    if let octets = process.virtualOctets { page.gauge("process_virtual_memory_bytes", "Virtual memory.", octets) }
    if let threads = process.threads { page.gauge("process_threads", "Threads.", threads) }
    if let descriptors = process.descriptors { page.gauge("process_open_fds", "Open file descriptors.", descriptors) }
    if let most = process.mostDescriptors {
      page.gauge("process_max_fds", "Maximum number of open file descriptors.", most)
    }
  }
}
