// Quantities.swift -- converts durations and sizes from and to text.

private let durationUnits: [(name: String, milliseconds: Int)] = [
  ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
]

private let sizeUnits: [(name: String, octets: Int)] = [
  ("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40),
]

/// The duration of a text such as `1500ms`; nil for anything else.
func parseDuration(_ text: String) -> Duration? {
  quantity(text, durationUnits.map { ($0.name, $0.milliseconds) }).map { .milliseconds($0) }
}

/// The octets of a text such as `32MiB`; nil for anything else.
func parseSize(_ text: String) -> Int? { quantity(text, sizeUnits.map { ($0.name, $0.octets) }) }

/// The duration in the largest unit that yields a whole number.
func durationText(_ duration: Duration) -> String {
  let (seconds, attoseconds) = duration.components
  let milliseconds = Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
  guard milliseconds != 0 else { return "0s" }
  let unit = durationUnits.last { milliseconds.isMultiple(of: $0.milliseconds) } ?? durationUnits[0]
  return "\(milliseconds / unit.milliseconds)\(unit.name)"
}

/// The size in the largest unit that yields a whole number.
func sizeText(_ octets: Int) -> String {
  let unit = sizeUnits.last { octets.isMultiple(of: $0.octets) } ?? sizeUnits[0]
  return "\(octets / unit.octets)\(unit.name)"
}

private func quantity(_ text: String, _ units: [(String, Int)]) -> Int? {
  let digits = text.utf8.prefix { isDigit($0) }
  guard !digits.isEmpty, let count = Int(String(Substring(digits))),
    let unit = units.first(where: { $0.0 == String(text.dropFirst(digits.count)) })
  else { return nil }
  let (product, isTooLarge) = count.multipliedReportingOverflow(by: unit.1)
  return isTooLarge ? nil : product
}
