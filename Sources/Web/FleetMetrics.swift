// FleetMetrics.swift -- the metrics of the store that daemons share.

import Fleet
import Store
import Upstreams

extension Exposition {
  /// Writes the metrics of the second level.
  mutating func write(_ fleet: FleetReport, _ providers: [ProviderReport]) {
    let counters = fleet.counters
    gauge("httpdnsd_fleet_up", "Whether the store of cache.redis is used.", fleet.isUsed ? 1 : 0)
    gauge(
      "httpdnsd_fleet_degraded", "Whether the store refuses writes or a command.", fleet.store.complaint == nil ? 0 : 1)
    gauge("httpdnsd_fleet_members", "Daemons that share the store, this one among them.", fleet.memberCount ?? 0)
    counter("httpdnsd_fleet_requests_total", "Looks for answers in the store, by result.") {
      $0.add(by: "result", FleetResult.allCases.map { ($0.rawValue, counters.count(of: $0)) })
    }
    counter("httpdnsd_fleet_rejected_total", "Values of the store that were not used, by the check that failed.") {
      $0.add(by: "check", FleetRejection.allCases.map { ($0.rawValue, counters.rejected[$0] ?? 0) })
    }
    let leases = counters.leases
    counter("httpdnsd_fleet_leases_total", "Leases to ask a provider for all daemons, by result.") {
      $0.add(
        by: "result",
        [("won", leases.won), ("lost", leases.lost), ("expired", leases.expired), ("failed", leases.failed)])
    }
    counter("httpdnsd_fleet_refreshes_total", "Refreshes: adopted from another daemon, led for all, or made alone.") {
      $0.add(by: "result", [("adopted", counters.adopted), ("led", counters.led), ("alone", counters.alone)])
    }
    counter(
      "httpdnsd_fleet_writes_dropped_total", "Values that the store did not take, or that were dropped before.",
      fleet.droppedWrites + counters.failedWrites)
    counter("httpdnsd_fleet_flushes_total", "Flushes of other daemons, by what was done.") {
      $0.add(by: "result", [("done", counters.flushes), ("refused", counters.refusedFlushes)])
    }
    histogram(
      "httpdnsd_fleet_latency_seconds", "Times of exchanges with the store that an answer waited for.",
      [([], counters.latency)])
    gauge("httpdnsd_fleet_units", "Billing units of the current day (UTC), of all daemons of the fleet.") { samples in
      for provider in providers {
        guard let units = provider.fleetUnits else { continue }
        samples.add(units, [MetricLabel("provider", provider.name)])
      }
    }
  }
}
