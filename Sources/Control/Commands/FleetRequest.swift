// FleetRequest.swift -- `GET /fleet`: the state of the shared store, its use, and the daemons of the fleet.

import EventLoop
import Fleet
import Forwarder
import HTTPMessage
import HTTPServer
import JSON
import Store
import Telemetry
import Upstreams

struct FleetRequest: ControlRequest {
  static let method = HTTPMethod.get
  static let path = "/fleet"

  init(_: HTTPServerRequest) {}

  func answer(from actions: any ControlActions) async -> any ControlText {
    FleetText(report: await actions.fleet(), providers: await actions.providers())
  }
}

struct FleetText: ControlText {
  /// Nil without a store.
  let report: FleetReport?
  let providers: [ProviderReport]

  /// The units of each provider on the current day, of all daemons, and their limit; 0 for none.
  private var units: [(name: String, units: Int, limit: Int)] {
    providers.compactMap { report in report.fleetUnits.map { (report.name, $0, report.unitsPerDay) } }
  }

  /// Whether the store is not used, or does not take everything.
  var isIncomplete: Bool { report.map { !$0.isUsed || $0.store.complaint != nil } ?? true }

  var text: String {
    guard let report else { return "no store: cache.redis is empty, or the cache is off\n" }
    let counters = report.counters
    let hits = counters.count(of: .hit)
    let asked = hits + counters.count(of: .miss) + counters.count(of: .rejected)
    let latency = report.isUsed ? report.store.latency.map { ", answers in \(TimeText.fine($0))" } ?? "" : ""
    var rows = [["store", "\(report.place): \(report.state)\(latency)"]]
    rows.append([
      "answers",
      "\(counted(asked, "lookup")), \(asked == 0 ? "no" : "\(hits * 100 / asked) %") hits; "
        + "\(counters.count(of: .rejected)) ignored, \(counters.count(of: .timeout)) timed out, "
        + "\(counters.count(of: .open) + counters.count(of: .error)) without the store",
    ])
    rows.append([
      "leases",
      "\(counters.leases.won) won, \(counters.leases.lost) lost (\(counters.leases.expired) without an answer in time)",
    ])
    rows.append([
      "refreshes", "\(counters.adopted) adopted, \(counters.led) with a lease, \(counters.alone) without",
    ])
    rows.append([
      "values",
      "\(counters.writes) written, \(counters.failedWrites + report.droppedWrites) lost; "
        + (report.hasSecret ? "sealed" : "not sealed: fleet.secret_file is not set"),
    ])
    for line in units {
      let limit = line.limit == 0 ? "" : " of \(line.limit)"
      let units =
        "\(line.name): \(report.isUsed ? "" : "at least ")\(line.units)\(limit) today, by all daemons of the fleet"
      rows.append(["units", units + (report.isUsed ? "" : ", as far as this one knows")])
    }
    let ignored = FleetRejection.allCases.filter { counters.rejected[$0] != nil }
      .map { "\(counters.rejected[$0] ?? 0) \($0.words)" }
    if !ignored.isEmpty { rows.append(["ignored", ignored.joined(separator: ", ")]) }
    var lines = TextTable.lines(rows)
    if !report.members.isEmpty {
      let hosts = Dictionary(report.members.map { ($0.member.host, 1) }, uniquingKeysWith: +)
      let members = report.members.map { member, age in
        [
          // Containers and copies of a machine may have one name.
          member.host + (hosts[member.host, default: 1] > 1 ? " \(member.id.prefix(8))" : "")
            + (member.id == report.own.id ? " (this one)" : ""), member.version,
          TimeText.rough(.seconds(age)) + " ago",
          member.difference(from: report.own).map(\.words) ?? "the same",
        ]
      }
      lines += [""] + TextTable.lines([["daemon", "version", "last seen", "configuration"]] + members)
    }
    return lines.map { "\($0)\n" }.joined()
  }

  var json: String {
    guard let report else { return JSONText.object(["store": "null"]) }
    let counters = report.counters
    let looks = FleetResult.allCases.map { ($0.rawValue, "\(counters.count(of: $0))") }
    let rejected = FleetRejection.allCases.map { ($0.rawValue, "\(counters.rejected[$0] ?? 0)") }
    let members = report.members.map { member, age in
      JSONText.object([
        "id": JSONText.string(member.id), "host": JSONText.string(member.host),
        "version": JSONText.string(member.version), "fingerprint": JSONText.string(member.fingerprint),
        "difference": member.difference(from: report.own).map { JSONText.string("\($0)") },
        "seen_seconds_ago": "\(age)", "is_this": member.id == report.own.id ? "true" : "false",
      ])
    }
    return JSONText.object([
      "store": JSONText.string(report.place), "state": JSONText.string(report.state),
      "is_up": report.store.isUp ? "true" : "false", "is_used": report.isUsed ? "true" : "false",
      "latency_ms": report.store.latency.map { TimeText.thousandths($0) },
      "last_failure": report.store.lastFailure.map(JSONText.string),
      "complaint": report.store.complaint.map(JSONText.string),
      "clock_difference_seconds": report.clockDifference.map { "\($0)" },
      "is_sealed": report.hasSecret ? "true" : "false", "looks": JSONText.object(looks),
      "rejected": JSONText.object(rejected),
      "leases": JSONText.object([
        ("won", "\(counters.leases.won)"), ("lost", "\(counters.leases.lost)"),
        ("expired", "\(counters.leases.expired)"), ("failed", "\(counters.leases.failed)"),
      ]),
      "refreshes": JSONText.object([
        ("adopted", "\(counters.adopted)"), ("led", "\(counters.led)"), ("alone", "\(counters.alone)"),
      ]),
      "writes": "\(counters.writes)", "failed_writes": "\(counters.failedWrites)",
      "dropped_writes": "\(report.droppedWrites)", "losses": "\(counters.losses)",
      "units": JSONText.object(units.map { ($0.name, "\($0.units)") }),
      "members": JSONText.array(members),
    ])
  }
}

extension FleetMember.Difference {
  /// What is different, and what that means.
  fileprivate var words: String {
    switch self {
    case .secret: "different secret: neither answers nor flushes are shared with it"
    case .site: "different site: no answers are shared with it"
    case .configuration: "different providers, rules or limits: no answers are shared with it"
    }
  }
}

extension FleetRejection {
  /// Follows a count of values.
  fileprivate var words: String {
    switch self {
    case .size: "too large"
    case .version: "of another version"
    case .seal: "not sealed with this secret"
    case .message: "without a DNS response"
    case .question: "to another question"
    case .lifetime: "with impossible times"
    case .expired: "about to expire"
    case .flushed: "from before a flush"
    case .records: "with records that are not accepted"
    }
  }
}

extension ControlClient {
  /// Returns the state of the store and the daemons that share it.
  public func fleet(_ form: ControlForm) throws(ControlClientError) -> ControlAnswer {
    try ask(FleetRequest.self, form)
  }
}
