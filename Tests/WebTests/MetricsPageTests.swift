// MetricsPageTests.swift -- each number stands on the page under its name.

import Forwarder
import Glibc
import LocalDNS
import MessageCache
import Resolver
import Telemetry
import Testing

@testable import Upstreams
@testable import Web

@Suite struct `The page of metrics` {
  private func page(_ statistics: ForwarderStatistics, _ process: ProcessNumbers = .now) -> String {
    String(decoding: MetricsPage(statistics, process, version: "1.2.3").octets, as: UTF8.self)
  }

  private func sample(_ name: String, _ page: String) -> String? {
    page.split(separator: "\n").first { $0.hasPrefix("\(name) ") }.map { String($0.dropFirst(name.count + 1)) }
  }

  @Test func `the metrics of a provider have state, transfers, failures by reason, units and round trips`() throws {
    var report = ProviderReport(name: "first")
    report.state = .pausing("it reports too many requests", until: 0)
    (report.counters.transfers, report.counters.units, report.unitsToday, report.unitsPerDay) = (9, 8, 7, 100)
    (report.counters.refusals, report.counters.pairs, report.counters.notListed) = (3, 5, 6)
    for _ in 0..<4 { report.counters.demotions.count(.server) }
    report.counters.demotions.count(.aside)
    report.counters.failures.count(.noResponse(.timeout))
    report.counters.failures.count(.noResponse(.timeout))
    report.counters.failures.count(.noAnswer(.quota))
    report.counters.roundTrips.observe(.milliseconds(30))
    var statistics = ForwarderStatistics.empty
    statistics.providers = [report, ProviderReport(name: "second")]
    let page = page(statistics)
    let expected = [
      "httpdnsd_provider_state{provider=\"first\",state=\"aside\"}": "1",
      "httpdnsd_provider_state{provider=\"first\",state=\"up\"}": "0",
      "httpdnsd_provider_state{provider=\"second\",state=\"up\"}": "1",
      "httpdnsd_provider_transfers_total{provider=\"first\"}": "9",
      "httpdnsd_provider_failures_total{provider=\"first\",reason=\"timeout\"}": "2",
      "httpdnsd_provider_failures_total{provider=\"first\",reason=\"quota\"}": "1",
      "httpdnsd_provider_failures_total{provider=\"second\",reason=\"quota\"}": "0",
      "httpdnsd_provider_refusals_total{provider=\"first\"}": "3",
      "httpdnsd_provider_paired_transfers_total{provider=\"first\"}": "5",
      "httpdnsd_provider_not_listed_total{provider=\"first\"}": "6",
      "httpdnsd_provider_demotions_total{provider=\"first\",kind=\"server\"}": "4",
      "httpdnsd_provider_demotions_total{provider=\"first\",kind=\"down\"}": "0",
      "httpdnsd_provider_demotions_total{provider=\"first\",kind=\"aside\"}": "1",
      "httpdnsd_provider_units_total{provider=\"first\"}": "8",
      "httpdnsd_provider_units_today{provider=\"first\"}": "7",
      "httpdnsd_provider_units_per_day{provider=\"first\"}": "100",
      "httpdnsd_provider_round_trip_seconds_count{provider=\"first\"}": "1",
      "httpdnsd_provider_round_trip_seconds_sum{provider=\"first\"}": "0.03",
    ]
    for (name, value) in expected { #expect(sample(name, page) == value, "\(name)") }
  }

  @Test func `the metrics have a sample for each reason of a failed transfer from the start`() {
    var statistics = ForwarderStatistics.empty
    statistics.providers = [ProviderReport(name: "first")]
    let reasons = page(statistics).split(separator: "\n").filter { $0.hasPrefix("httpdnsd_provider_failures_total{") }
      .map { String($0.split(separator: "\"")[3]) }
    #expect(
      reasons == [
        "timeout", "busy", "refused", "unreachable", "certificate", "pin", "tls", "proxy", "reset", "calm", "too_large",
        "bad_http", "bad_request", "cancelled", "internal", "slept", "authentication", "expired", "account", "name",
        "bad_parameter", "bad_path", "quota", "status", "unreadable", "wrong_question", "truncated", "unsupported",
      ])
  }

  @Test func `the metrics have the cache, the cold path, refreshing and LocalDNS`() throws {
    var statistics = ForwarderStatistics.empty
    (statistics.cache.entries, statistics.cache.octets, statistics.cache.evictions) = (3, 4096, 5)
    (statistics.resolver.fetches, statistics.resolver.local.fallbacks, statistics.resolver.duplicates) = (6, 2, 15)
    statistics.resolver.local.roundTrips.observe(.milliseconds(4))
    statistics.refresh?.overBudget = 11
    statistics.localDNS = LocalDNSCounters()
    (statistics.localDNS.datagramQueries, statistics.localDNS.streamQueries) = (16, 17)
    (statistics.localDNS.ignoredReplies, statistics.localDNS.timeouts, statistics.localDNS.demotions) = (18, 19, 20)
    (statistics.questionsInFlight, statistics.waitingClients, statistics.droppedDatagrams) = (12, 13, 14)
    let page = page(statistics)
    let expected = [
      "httpdnsd_cache_entries": "3", "httpdnsd_cache_bytes": "4096", "httpdnsd_cache_evictions_total": "5",
      "httpdnsd_upstream_questions_total": "6", "httpdnsd_fallback_answers_total": "2",
      "httpdnsd_localdns_round_trip_seconds_count": "1", "httpdnsd_refresh_over_budget_total": "11",
      "httpdnsd_questions_in_flight": "12", "httpdnsd_waiting_clients": "13",
      "httpdnsd_udp_receive_drops_total": "14", "httpdnsd_duplicate_queries_total": "15",
      "httpdnsd_displaced_questions_total": "0",
      "httpdnsd_localdns_queries_total{transport=\"udp\"}": "16",
      "httpdnsd_localdns_queries_total{transport=\"tcp\"}": "17",
      "httpdnsd_localdns_ignored_replies_total": "18", "httpdnsd_localdns_timeouts_total": "19",
      "httpdnsd_localdns_demotions_total": "20",
      "httpdnsd_limited_queries_total{limit=\"misses_per_domain\",result=\"servfail\"}": "0",
    ]
    for (name, value) in expected { #expect(sample(name, page) == value, "\(name)") }
  }

  @Test func `the metrics have the queries of each rule, by its name`() {
    var statistics = ForwarderStatistics.empty
    #expect(!page(statistics).contains("httpdnsd_rule_queries_total"))
    for name in ["1", "ads"] { _ = statistics.rules.number(of: name) }
    statistics.queries.rules[1] = 21
    let page = page(statistics)
    #expect(sample("httpdnsd_rule_queries_total{rule=\"1\"}", page) == "0")
    #expect(sample("httpdnsd_rule_queries_total{rule=\"ads\"}", page) == "21")
  }

  @Test func `the metrics have a sample for each outcome, type and code from the start`() {
    let page = page(.empty)
    for outcome in ["hit", "stale", "local", "blocked", "miss", "refused", "invalid", "overflow", "dropped", "limited"]
    {
      for transport in ["udp", "tcp"] {
        let name = "httpdnsd_queries_total{transport=\"\(transport)\",outcome=\"\(outcome)\"}"
        #expect(sample(name, page) == "0", "\(name)")
      }
    }
    for code in ["noerror", "formerr", "servfail", "nxdomain", "notimp", "refused", "badvers", "other"] {
      #expect(sample("httpdnsd_responses_total{rcode=\"\(code)\"}", page) == "0")
    }
    for type in ["a", "aaaa", "https", "ptr", "other"] {
      #expect(sample("httpdnsd_questions_total{type=\"\(type)\"}", page) == "0")
    }
  }

  @Test func `the metrics omit what the kernel does not report, and refreshing without a cache`() {
    var statistics = ForwarderStatistics.empty
    (statistics.droppedDatagrams, statistics.unreadOctets, statistics.refresh) = (nil, nil, nil)
    let page = page(statistics, ProcessNumbers(cpuSeconds: 1.5))
    #expect(sample("process_cpu_seconds_total", page) == "1.5")
    for name in ["httpdnsd_udp_receive", "httpdnsd_refresh", "process_open_fds", "process_resident"] {
      #expect(!page.contains(name), "\(name)")
    }
  }

  @Test func `the numbers of this process are plausible`() throws {
    let numbers = ProcessNumbers.now
    #expect(numbers.cpuSeconds > 0)
    let (resident, virtual) = (try #require(numbers.residentOctets), try #require(numbers.virtualOctets))
    #expect(resident > 1 << 20 && virtual > resident)
    #expect(try #require(numbers.threads) >= 1)
    let (open, most) = (try #require(numbers.descriptors), try #require(numbers.mostDescriptors))
    #expect((3...most).contains(open))
    let start = try #require(numbers.startTime)
    #expect((-2...86_400).contains(Double(time(nil)) - start))
  }

  @Test func `the time of the start is the same on every page`() throws {
    let times = (0..<100).map { _ in ProcessNumbers.now.startTime }
    let first = try #require(times[0])
    #expect(times.allSatisfy { $0 == first })
    #expect(abs(first * 100 - (first * 100).rounded()) < 0.001)
  }
}
