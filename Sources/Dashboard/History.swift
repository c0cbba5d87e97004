// History.swift -- the rows of a span, as the page asks for them when it is opened.

import EventLoop
import JSON
import Upstreams

/// A span that the page can show.
enum HistorySpan: String, CaseIterable {
  case tenMinutes = "10m"
  case hour = "1h"
  case day = "24h"

  fileprivate var duration: Duration {
    switch self {
    case .tenMinutes: .seconds(600)
    case .hour: .seconds(3600)
    case .day: .seconds(86_400)
    }
  }
}

/// The rows of a span, to be written on any thread.
struct History: Sendable {
  /// Nanoseconds from the boot clock to the wall clock.
  let offset: Int64
  /// The number of the latest short sample.
  let number: UInt64
  private let rings: [SampleRing]
  private let rows: [Row]

  private struct Row {
    var begin: BootInstant
    var end: BootInstant
    /// Which of `rings`, and where in it.
    var ring: Int
    var place: Int
  }

  /// Rows that overlap by less are next to each other: each ring has its own readings.
  private static let tolerance = Duration.milliseconds(500)

  init(_ span: HistorySpan, _ sampler: Sampler, now: BootInstant) {
    (offset, number) = (sampler.offset, sampler.shorts.number)
    let rings = [sampler.minutes, sampler.shorts]
    self.rings = rings
    let first = now + (.zero - span.duration)
    func recent(_ ring: Int) -> [Row] {
      let samples = rings[ring]
      return samples.places.compactMap { place in
        let (end, seconds) = (samples.ends[place], samples.figures[0][place])
        guard end > first else { return nil }
        return Row(begin: end + .seconds(seconds.isNaN ? 0 : -Double(seconds)), end: end, ring: ring, place: place)
      }
    }
    let minutes = recent(0)
    guard span == .tenMinutes else {
      rows = minutes
      return
    }
    // Minutes fill what the short rows leave free.
    let shorts = recent(1)
    let free = minutes.filter { minute in
      shorts.allSatisfy { minute.end - $0.begin < History.tolerance || $0.end - minute.begin < History.tolerance }
    }
    rows = (free + shorts).sorted { $0.end < $1.end }
  }

  /// The members `columns` and `providers`.
  ///
  /// - Parameter limits: `units_per_day` of the providers, by name.
  func members(limits: [String: Int]) -> [(String, String)] {
    let times = rows.map { FigureText.time($0.end, offset) }
    let columns = Figure.names.enumerated().map { column, name in
      (name, JSONText.array(rows.map { FigureText.number(rings[$0.ring].figures[column][$0.place]) }))
    }
    return [
      ("columns", JSONText.object([("time", JSONText.array(times))] + columns)),
      ("providers", JSONText.array(names.map { object(of: $0, limit: limits[$0] ?? 0) })),
    ]
  }

  private var names: [String] {
    var names: [String] = []
    for (index, ring) in rings.enumerated() {
      let places = rows.filter { $0.ring == index }.map(\.place)
      for provider in ring.providers where !names.contains(provider.name) {
        if places.contains(where: { !provider.state[$0].isNaN }) { names.append(provider.name) }
      }
    }
    return names
  }

  private func object(of name: String, limit: Int) -> String {
    let columns = rings.map { ring in ring.providers.first { $0.name == name } }
    func column(_ values: (SampleRing.Provider) -> [Float]) -> String {
      let known = columns.map { $0.map(values) }
      return JSONText.array(rows.map { row in FigureText.number(known[row.ring].map { $0[row.place] } ?? .nan) })
    }
    return JSONText.object([
      "name": JSONText.string(name), "units_per_day": "\(limit)", "state": column(\.state),
      "transfers": column(\.transfers), "failures": column(\.failures), "units_today": column(\.unitsToday),
      "median_ms": column(\.median),
    ])
  }
}
