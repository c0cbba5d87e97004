// ProviderMetrics.swift -- writes the metrics of each provider, labelled with its name in the configuration.

import Forwarder
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
    counter("httpdnsd_provider_transfers_total", "Transfers to the provider, with probes and checks.") { samples in
      for report in providers { samples.add(report.transfers, name(report)) }
    }
    counter("httpdnsd_provider_failures_total", "Transfers that brought no reply of any use, by reason.") { samples in
      for report in providers {
        for reason in TransferFailureCause.allCases {
          samples.add(report.failureCounts[reason], name(report) + [MetricLabel("reason", reason.rawValue)])
        }
      }
    }
    counter(
      "httpdnsd_provider_probes_total", "Transfers that found out whether it is well, or whose fault a failure was."
    ) { samples in
      for report in providers { samples.add(report.probes, name(report)) }
    }
    counter(
      "httpdnsd_provider_refusals_total", "Questions that were not sent: it was down, backing off or at its limit."
    ) { samples in
      for report in providers { samples.add(report.refusals, name(report)) }
    }
    counter(
      "httpdnsd_provider_demotions_total",
      "Times that others were asked first from then on: a server failed, all were down, or the provider refused to serve."
    ) { samples in
      for report in providers {
        for kind in ProviderDemotions.Kind.allCases {
          samples.add(report.demotions[kind], name(report) + [MetricLabel("kind", kind.rawValue)])
        }
      }
    }
    counter("httpdnsd_provider_units_total", "Billing units since the start, as far as they are known.") { samples in
      for report in providers { samples.add(report.units, name(report)) }
    }
    gauge("httpdnsd_provider_units_today", "Billing units of this day (UTC).") { samples in
      for report in providers { samples.add(report.unitsToday, name(report)) }
    }
    gauge("httpdnsd_provider_units_per_day", "units_per_day of the configuration; 0 for no limit.") { samples in
      for report in providers { samples.add(report.unitsPerDay, name(report)) }
    }
    histogram(
      "httpdnsd_provider_round_trip_seconds", "How long the provider's replies took.",
      providers.map { (name($0), $0.roundTrips) })
  }
}
