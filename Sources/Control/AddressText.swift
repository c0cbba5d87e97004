// AddressText.swift -- what ranking knows of an address, as text and as JSON.

import JSON
import Ranking
import Telemetry

package enum AddressText {
  /// One line: `20.1 ms by tcp:443, 3 minutes ago; reported bad, last for 9 minutes`.
  package static func line(_ figures: AddressFigures) -> String {
    var parts = figures.probes.map { probe in
      var text = probe.roundTrip.map { "\(TimeText.milliseconds($0)) by \(probe.kind)" } ?? "no answer to \(probe.kind)"
      if probe.failures > 0, probe.roundTrip != nil { text += ", \(counted(probe.failures, "failure")) since" }
      return text + ", measured \(TimeText.rough(probe.age)) ago"
    }
    if let time = figures.badFor { parts.append("reported, last for \(TimeText.rough(time))") }
    if figures.reportedFailures > 0 {
      parts.append("\(counted(figures.reportedFailures, "failure")) reported within a minute")
    }
    if let time = figures.reportedMilliseconds { parts.append("\(time) ms reported") }
    return parts.isEmpty ? "reported" : parts.joined(separator: "; ")
  }

  static func json(_ figures: AddressFigures) -> String {
    JSONText.object([
      "address": JSONText.string("\(figures.address)"),
      "probes": JSONText.array(
        figures.probes.map { probe in
          JSONText.object([
            "kind": JSONText.string(probe.kind), "ms": probe.roundTrip.map(JSONText.milliseconds),
            "failures": "\(probe.failures)", "age_seconds": JSONText.seconds(probe.age),
          ])
        }),
      "bad_seconds": figures.badFor.map(JSONText.seconds), "reported_failures": "\(figures.reportedFailures)",
      "reported_ms": figures.reportedMilliseconds.map { "\($0)" },
    ])
  }
}
