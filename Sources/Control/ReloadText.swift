// ReloadText.swift -- the file of the configuration, and the result of a reload, as text and as JSON.

import Forwarder
import Telemetry

/// The result of a reload.
struct ReloadText: ControlText {
  let report: ReloadReport
  /// The file that was read.
  let file: String

  /// Whether the configuration stays what it was.
  var isNothing: Bool { !report.mistakes.isEmpty }

  var text: String {
    var lines = report.warnings.map { "warning: \($0)" } + report.mistakes
    if isNothing {
      lines.append("configuration unchanged")
    } else {
      if !report.fixedKeys.isEmpty {
        lines.append("needs a restart to change: \(report.fixedKeys.joined(separator: ", "))")
      }
      lines.append("configuration reloaded from \(file) in \(TimeText.milliseconds(report.duration))")
    }
    return lines.map { "\($0)\n" }.joined()
  }

  var json: String {
    JSONText.object([
      "reloaded": "\(!isNothing)", "file": JSONText.string(file),
      "mistakes": JSONText.array(report.mistakes.map(JSONText.string)),
      "warnings": JSONText.array(report.warnings.map(JSONText.string)),
      "needs_restart": JSONText.array(report.fixedKeys.map(JSONText.string)),
      "took_ms": isNothing ? nil : JSONText.milliseconds(report.duration),
    ])
  }
}

/// The file of the configuration.
struct ConfigurationText: ControlText {
  let file: String

  var text: String { "\(file)\n" }

  var json: String { JSONText.object(["file": JSONText.string(file)]) }
}
