// SampleRing.swift -- the last samples, in columns of fixed size.

import EventLoop
import Upstreams

/// Keeps the last samples. Its memory is allocated when it is made, but for the columns of a provider, which come with it.
struct SampleRing: Sendable {
  /// The columns of one provider.
  struct Provider: Sendable {
    var name: String
    /// `units_per_day`, as in the latest row.
    fileprivate(set) var unitsPerDay = 0
    fileprivate(set) var state: [Float]
    fileprivate(set) var transfers: [Float]
    fileprivate(set) var failures: [Float]
    fileprivate(set) var unitsToday: [Float]
    fileprivate(set) var median: [Float]

    fileprivate init(_ name: String, rows: Int) {
      self.name = name
      let none = [Float](repeating: .nan, count: rows)
      (state, transfers, failures, unitsToday, median) = (none, none, none, none, none)
    }

    fileprivate mutating func set(_ sample: Sample.Provider?, at place: Int) {
      state[place] = sample.map { Float($0.state) } ?? .nan
      transfers[place] = sample.map { Float($0.transfers) } ?? .nan
      failures[place] = sample.map { Float($0.failures) } ?? .nan
      unitsToday[place] = sample.map { Float($0.unitsToday) } ?? .nan
      median[place] = sample?.median ?? .nan
      if let sample { unitsPerDay = sample.unitsPerDay }
    }

    /// The row; nil if the provider did not exist.
    fileprivate func sample(at place: Int) -> Sample.Provider? {
      guard !state[place].isNaN else { return nil }
      return Sample.Provider(
        name: name, state: Int(state[place]), transfers: Int(transfers[place]), failures: Int(failures[place]),
        unitsToday: Int(unitsToday[place]), unitsPerDay: unitsPerDay, median: median[place])
    }
  }

  /// The most providers with columns; others are in live samples alone.
  static let mostProviders = 16

  private let capacity: Int
  private(set) var ends: [BootInstant]
  /// A column for each name of `Figure`.
  private(set) var figures: [[Float]]
  private(set) var providers: [Provider] = []
  private var next = 0
  private var count = 0
  /// Samples so far; the number of the latest one.
  private(set) var number: UInt64 = 0

  init(rows: Int) {
    capacity = rows
    ends = Array(repeating: BootInstant(nanoseconds: 0), count: rows)
    figures = Array(repeating: Array(repeating: .nan, count: rows), count: Figure.count)
  }

  /// Octets of its columns.
  var octets: Int {
    let providers = self.providers.count * 5
    return capacity * (MemoryLayout<BootInstant>.size + (Figure.count + providers) * MemoryLayout<Float>.size)
  }

  /// The places of the rows in the columns, the oldest first.
  var places: [Int] { (0..<count).map { (next - count + $0 + capacity) % capacity } }

  /// The samples after the one with that number, with their own; nil if one of them is no longer here.
  func samples(after number: UInt64) -> [(number: UInt64, sample: Sample)]? {
    guard number <= self.number, self.number - number <= count else { return nil }
    let places = places.suffix(Int(self.number - number))
    return zip((number + 1)..., places).map { number, place in
      (
        number,
        Sample(
          end: ends[place], figures: figures.map { $0[place] }, providers: providers.compactMap { $0.sample(at: place) }
        )
      )
    }
  }

  mutating func append(_ sample: Sample) {
    number += 1
    let place = next
    next = (next + 1) % capacity
    count = min(count + 1, capacity)
    ends[place] = sample.end
    for (column, value) in sample.figures.enumerated() { figures[column][place] = value }
    for column in providers.indices { providers[column].set(nil, at: place) }
    let shown = sample.providers.prefix(SampleRing.mostProviders)
    for provider in shown { providers[column(of: provider.name, among: shown)].set(provider, at: place) }
  }

  /// The column of a provider; a new one takes the place of one that is no longer shown when there are too many.
  private mutating func column(of name: String, among shown: ArraySlice<Sample.Provider>) -> Int {
    if let known = providers.firstIndex(where: { $0.name == name }) { return known }
    let new = Provider(name, rows: capacity)
    guard providers.count == SampleRing.mostProviders,
      let gone = providers.firstIndex(where: { old in !shown.contains { $0.name == old.name } })
    else {
      providers.append(new)
      return providers.count - 1
    }
    providers[gone] = new
    return gone
  }
}
