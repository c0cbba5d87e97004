// Figures.swift -- what was measured in each round, and the best of it.

/// Values by name, one for each round.
struct Figures {
  private var figures: [(name: String, values: [Double])] = []

  mutating func note(_ name: String, _ value: Double) {
    if let index = figures.firstIndex(where: { $0.name == name }) {
      figures[index].values.append(value)
    } else {
      figures.append((name, [value]))
    }
  }

  mutating func note(_ name: String, _ delays: Delays) {
    note("\(name)_p9999_us", Double(delays.quantile(0.9999)) / 1000)
    note("\(name)_longest_us", Double(delays.longest) / 1000)
    note("\(name)_looks", Double(delays.count))
    note("\(name)_preempted", Double(delays.preempted))
  }

  /// A line for each figure: the smallest value, or the sum of what is a number of events.
  func show() {
    for (name, values) in figures {
      let isCount = name.hasSuffix("_looks") || name.hasSuffix("_preempted")
      print("\(name) \(isCount ? values.reduce(0, +) : values.min()!)")
    }
    for (name, values) in figures where name.hasSuffix("longest_us") {
      print("\(name)_rounds \(values.map { String(Int($0)) }.joined(separator: ","))")
    }
  }
}
