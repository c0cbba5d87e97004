// SetsRequest.swift -- `POST /sets[?refill]`: the firewall sets of rules; adds all cached addresses to them again.

import FirewallSets
import Forwarder
import HTTPMessage
import HTTPServer
import JSON

/// A request about the firewall sets of rules.
public struct SetsRequest: ControlRequest {
  static let method = HTTPMethod.post
  static let path = "/sets"

  /// Behind the type of an interval set.
  public static let intervals = ", intervals"

  private let refills: Bool

  init(_ request: HTTPServerRequest) throws(ControlRefusal) {
    guard request.query == nil || request.query == "refill" else {
      throw ControlRefusal(status: 400, reason: "unknown parameter; expected refill")
    }
    refills = request.query != nil
  }

  func answer(from actions: any ControlActions) async -> any ControlText {
    SetsText(statuses: await actions.sets(refilled: refills))
  }
}

/// The sets in the order of the configuration.
struct SetsText: ControlText {
  let statuses: [SetStatus]

  var isIncomplete: Bool { statuses.contains { $0.failure != nil } }

  var text: String {
    guard !statuses.isEmpty else { return "no rule has sets\n" }
    let rows = statuses.map { status in
      [
        "\(status.name)",
        status.description.map { $0.key.rawValue + ($0.isInterval ? SetsRequest.intervals : "") } ?? "-",
        "\(status.added)", "\(status.failed)",
        "\(status.late)", status.state,
      ]
    }
    return TextTable.lines([["set", "type", "added", "failed", "late", "state"]] + rows).map { "\($0)\n" }.joined()
  }

  var json: String {
    let objects = statuses.map { status in
      JSONText.object([
        "name": JSONText.string("\(status.name)"),
        "type": (status.description?.key.rawValue).map(JSONText.string),
        "timeouts": (status.description?.hasTimeouts).map { "\($0)" },
        "intervals": (status.description?.isInterval).map { "\($0)" },
        "added": "\(status.added)", "failed": "\(status.failed)", "late": "\(status.late)",
        "state": JSONText.string(status.state),
      ])
    }
    return JSONText.object(["sets": JSONText.array(objects)])
  }
}

extension ControlClient {
  /// The firewall sets of rules; `refilled` adds all cached addresses to them again.
  public func sets(refilled: Bool, _ form: ControlForm) throws(ControlClientError) -> ControlAnswer {
    try ask(SetsRequest.self, query: refilled ? "?refill" : "", form)
  }
}
