// ListMetrics.swift -- the samples of the lists and firewall sets of rules. A label has no user, password or query of a URL.

import FirewallSets
import ListStore
import Lists

extension Exposition {
  /// Writes the samples of each list.
  mutating func write(lists: [ListReport]) {
    gauge("httpdnsd_list_names", "Names of a list that are in use.") {
      $0.add(by: "list", lists.map { ($0.name, UInt64($0.names)) })
    }
    gauge("httpdnsd_list_lines_left_out", "Lines of a list that select no name.") {
      $0.add(by: "list", lists.map { ($0.name, UInt64($0.leftOut.total)) })
    }
    gauge("httpdnsd_list_age_seconds", "Time since a list was changed, or since it was last fetched.") { samples in
      for list in lists { if let age = list.age { samples.add(age.inSeconds, [MetricLabel("list", list.name)]) } }
    }
    gauge("httpdnsd_list_interval_seconds", "Time between two fetches of a list.") { samples in
      for list in lists {
        if let interval = list.interval { samples.add(interval.inSeconds, [MetricLabel("list", list.name)]) }
      }
    }
    counter("httpdnsd_list_fetches_total", "Fetches of a list, by result.") { samples in
      for list in lists where list.interval != nil {
        for (result, count) in [
          ("changed", list.fetches.changed), ("unchanged", list.fetches.unchanged), ("failed", list.fetches.failed),
          ("refused", list.fetches.refused),
        ] {
          samples.add(count, [MetricLabel("list", list.name), MetricLabel("result", result)])
        }
      }
    }
  }

  /// Writes the samples of each firewall set.
  mutating func write(sets: [SetStatus]) {
    counter("httpdnsd_set_additions_total", "Addresses for a firewall set, by result.") { samples in
      for set in sets {
        for (result, count) in [("added", set.added), ("failed", set.failed), ("late", set.late)] {
          samples.add(count, [MetricLabel("set", "\(set.name)"), MetricLabel("result", result)])
        }
      }
    }
  }
}

extension Duration {
  fileprivate var inSeconds: Int64 { components.seconds }
}
