// ReloadRequest.swift -- `POST /reload`: reads the configuration again.

import Forwarder
import HTTPMessage
import HTTPServer
import JSON
import Telemetry

struct ReloadRequest: ControlRequest {
  static let method = HTTPMethod.post
  static let path = "/reload"

  init(_: HTTPServerRequest) {}

  func answer(from actions: any ControlActions) async -> any ControlText {
    ReloadText(report: await actions.reload(), file: actions.file)
  }
}

struct ReloadText: ControlText {
  let report: ReloadReport
  /// The file that was read.
  let file: String

  /// Whether the configuration is unchanged because of mistakes.
  var isIncomplete: Bool { !report.mistakes.isEmpty }

  var text: String {
    var lines = report.warnings.map { "warning: \($0)" } + report.mistakes
    if isIncomplete {
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
      "reloaded": "\(!isIncomplete)", "file": JSONText.string(file),
      "mistakes": JSONText.array(report.mistakes.map(JSONText.string)),
      "warnings": JSONText.array(report.warnings.map(JSONText.string)),
      "needs_restart": JSONText.array(report.fixedKeys.map(JSONText.string)),
      "took_ms": isIncomplete ? nil : JSONText.milliseconds(report.duration),
    ])
  }
}

extension ControlClient {
  /// Makes the daemon read its configuration again.
  public func reload(_ form: ControlForm) throws(ControlClientError) -> ControlAnswer {
    try ask(ReloadRequest.self, form)
  }
}
