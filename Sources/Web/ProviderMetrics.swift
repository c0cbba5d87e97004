// ProviderMetrics.swift -- writes the metrics of each provider, labelled with its name in the configuration.

import Upstreams

extension Exposition {
  /// Writes the families that have a sample per provider.
  mutating func write(providers: [ProviderReport]) {
    func name(_ report: ProviderReport) -> [MetricLabel] { [MetricLabel("provider", report.name)] }
    gauge("httpdnsd_provider_state", "1 for the state that the provider is in, 0 for the others.") { samples in
      for report in providers {
        for state in ProviderReport.State.words {
          samples.add(report.state.word == state ? 1 : 0, name(report) + [MetricLabel("state", state)])
        }
      }
    }
    func counter(_ family: String, _ help: String, _ value: (ProviderReport) -> Int) {
      self.counter(family, help) { samples in
        for report in providers { samples.add(value(report), name(report)) }
      }
    }
    counter("httpdnsd_provider_transfers_total", "Transfers to the provider.") { $0.counters.transfers }
    self.counter("httpdnsd_provider_failures_total", "Transfers without a usable reply, by reason.") { samples in
      for report in providers {
        for reason in TransferFailureCause.allCases {
          samples.add(report.counters.failures[reason], name(report) + [MetricLabel("reason", reason.label)])
        }
      }
    }
    counter(
      "httpdnsd_provider_handshakes_total",
      "Connections without a request that showed whether a server can be reached."
    ) { $0.counters.handshakes }
    counter(
      "httpdnsd_provider_paired_transfers_total", "Transfers that asked for the A and AAAA records of a name at once."
    ) { $0.counters.pairs }
    counter(
      "httpdnsd_provider_not_listed_total",
      "Questions that were not sent: the provider's account does not list the name."
    ) { $0.counters.notListed }
    counter(
      "httpdnsd_provider_refusals_total",
      "Questions that were not sent: the provider could not be reached, paused or was at its limit."
    ) { $0.counters.refusals }
    self.counter(
      "httpdnsd_provider_demotions_total",
      "Demotions: another server comes first, no server can be reached, or the provider pauses."
    ) { samples in
      for report in providers {
        for kind in ProviderDemotion.allCases {
          samples.add(report.counters.demotions[kind], name(report) + [MetricLabel("kind", kind.rawValue)])
        }
      }
    }
    counter("httpdnsd_provider_units_total", "Known billing units since the start.") { $0.counters.units }
    gauge("httpdnsd_provider_units_today", "Known billing units of the current day (UTC).") { samples in
      for report in providers { samples.add(report.unitsToday, name(report)) }
    }
    gauge("httpdnsd_provider_units_per_day", "units_per_day of the configuration; 0 for no limit.") { samples in
      for report in providers { samples.add(report.unitsPerDay, name(report)) }
    }
    histogram(
      "httpdnsd_provider_round_trip_seconds", "Round-trip times of the provider's replies.",
      providers.map { (name($0), $0.counters.roundTrips) })
  }
}
