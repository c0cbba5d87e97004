// ContentText.swift -- the cache's entries of a name, as text and as JSON.

import DNSWire
import EventLoop
import Forwarder
import Resolver
import Telemetry

/// Everything that the cache has for a name.
struct ContentText: ControlText {
  let name: DomainName
  let content: NameContent

  var isNothing: Bool { content.entries.isEmpty && content.failures.isEmpty }

  var text: String {
    guard !isNothing else { return "the cache has nothing for \(name.text)\n" }
    var lines = content.entries.flatMap(lines)
    if content.more > 0 { lines.append("and \(content.more) more \(content.more == 1 ? "entry" : "entries")") }
    for failure in content.failures {
      lines.append("\(title(failure.question)): failed; not asked again for \(TimeText.rough(failure.waits))")
    }
    return lines.map { "\($0)\n" }.joined()
  }

  private func lines(_ entry: EntryReport) -> [String] {
    var lines = ["\(title(entry.question)): \(entry.responseCode), \(TimeText.rough(entry.age)) old"]
    lines += (entry.answers + entry.authorities).map { record in
      "  \(record.owner.text) \(record.ttl) \(record.type) \(RDATA.text(record.rdata, type: record.type))"
    }
    let isFresh = entry.freshFor > .zero
    var state = isFresh ? "fresh for \(TimeText.rough(entry.freshFor))" : "expired"
    switch entry.usefulFor {
    case nil: state += ", served for as long as httpdnsd runs"
    case .some(let time) where time > max(entry.freshFor, .zero):
      state += ", as stale data for \(TimeText.rough(time))"
    case .some: break
    }
    lines.append("  \(state); \(entry.hits) \(entry.hits == 1 ? "hit" : "hits"), \(refresh(entry.refresh))")
    let asked = entry.upstreams.isEmpty ? "none" : entry.upstreams.joined(separator: ", ")
    lines.append("  from \(entry.source); upstreams for such names: \(asked)")
    return lines
  }

  private func title(_ question: EntryQuestion) -> String {
    var parts = ["\(question.name.text) \(question.typeText)"]
    if question.dnssecOK { parts.append("with DO") }
    if question.checkingDisabled { parts.append("with CD") }
    if let subnet = question.subnet { parts.append("for \(subnet)") }
    if !question.isHere { parts.append("on another network") }
    return parts.joined(separator: " ")
  }

  private func refresh(_ plan: RefreshPlan) -> String {
    switch plan {
    case .none: "not refreshed in advance"
    case .underWay: "being refreshed"
    case .kept(let time): "in refresh.keep, refreshed in \(TimeText.rough(time))"
    case .hot(let time): "in use, refreshed in \(TimeText.rough(time))"
    case .ifHit(let times, let time):
      "refreshed in \(TimeText.rough(time)) if asked for \(times) more \(times == 1 ? "time" : "times")"
    }
  }

  var json: String {
    JSONText.object([
      "name": JSONText.string(name.text), "entries": JSONText.array(content.entries.map(\.json)),
      "more": "\(content.more)",
      "failures": JSONText.array(
        content.failures.map { failure in
          JSONText.object(failure.question.members + [("waits_seconds", JSONText.seconds(failure.waits))])
        }),
    ])
  }
}

extension EntryReport {
  /// A JSON object.
  var json: String {
    let rest = JSONText.members([
      "rcode": JSONText.string("\(responseCode)"), "source": JSONText.string(source),
      "upstreams": JSONText.array(upstreams.map(JSONText.string)),
      "answers": JSONText.array(answers.map(JSONText.record)),
      "authorities": JSONText.array(authorities.map(JSONText.record)), "age_seconds": JSONText.seconds(age),
      "fresh_seconds": JSONText.seconds(freshFor), "useful_seconds": usefulFor.map(JSONText.seconds),
      "unused_seconds": JSONText.seconds(unusedFor), "hits": "\(hits)", "refresh": refresh.json,
    ])
    return JSONText.object(question.members + rest)
  }
}

extension EntryQuestion {
  /// The type, human-readable; NXDOMAIN holds for every type.
  var typeText: String { type.rawValue == 0 ? "(no such name)" : "\(type)" }

  fileprivate var members: [(String, String)] {
    JSONText.members([
      "name": JSONText.string(name.text), "type": JSONText.string(type.rawValue == 0 ? "every" : "\(type)"),
      "dnssec_ok": "\(dnssecOK)", "checking_disabled": "\(checkingDisabled)",
      "route": "\(route)", "network": "\(network)", "here": "\(isHere)",
      "subnet": subnet.map { JSONText.string("\($0)") },
    ])
  }
}

extension RefreshPlan {
  /// A JSON object; nil for none.
  fileprivate var json: String? {
    func object(_ why: String, _ time: Duration, hits: UInt32? = nil) -> String {
      JSONText.object([
        "why": JSONText.string(why), "in_seconds": JSONText.seconds(time), "missing_hits": hits.map { "\($0)" },
      ])
    }
    return switch self {
    case .none: nil
    case .underWay: object("under_way", .zero)
    case .kept(let time): object("kept", time)
    case .hot(let time): object("hot", time)
    case .ifHit(let times, let time): object("if_hit", time, hits: times)
    }
  }
}

extension JSONText {
  /// A record.
  static func record(_ record: ResourceRecord) -> String {
    object([
      "name": string(record.owner.text), "type": string("\(record.type)"), "ttl": "\(record.ttl)",
      "data": string(RDATA.text(record.rdata, type: record.type)),
    ])
  }
}
