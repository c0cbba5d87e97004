// Exposition.swift -- writes metrics in Prometheus' text format, version 0.0.4.
//
// https://prometheus.io/docs/instrumenting/exposition_formats/; names and units follow "Metric and label naming" there.

import Telemetry

/// A label of a sample.
public struct MetricLabel: Sendable, Hashable {
  /// The name: letters, digits and underscores; the first character is not a digit.
  public var name: String
  /// The value: any text; escaped in the output.
  public var value: String

  /// The name is not checked.
  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// A page for a scrape: metric families with their samples.
///
/// - Precondition: names consist of letters, digits, underscores and colons, and no family is added twice.
public struct Exposition: Sendable {
  /// The Content-Type of the page.
  public static let contentType = "text/plain; version=0.0.4; charset=utf-8"
  /// The octets written so far.
  public private(set) var octets: [UInt8] = []
  private var names: Set<String> = []
  private static let nanosecondsPerSecond = 1_000_000_000.0

  /// Reserves 16 KiB.
  public init() { octets.reserveCapacity(16_384) }

  /// Adds a family of counters.
  ///
  /// - Parameter name: must end in `_total`.
  public mutating func counter(_ name: String, _ help: String, _ samples: (inout Samples) -> Void) {
    precondition(name.hasSuffix("_total"), "a counter's name ends in _total")
    family(name, "counter", help, samples)
  }

  /// Adds a family with one counter.
  public mutating func counter(_ name: String, _ help: String, _ value: some BinaryInteger) {
    counter(name, help) { $0.add(value) }
  }

  /// Adds a family of gauges.
  public mutating func gauge(_ name: String, _ help: String, _ samples: (inout Samples) -> Void) {
    precondition(!name.hasSuffix("_total"), "only a counter's name ends in _total")
    family(name, "gauge", help, samples)
  }

  /// Adds a family with one gauge.
  public mutating func gauge(_ name: String, _ help: String, _ value: some BinaryInteger) {
    gauge(name, help) { $0.add(value) }
  }

  /// Adds a family of histograms of durations.
  ///
  /// - Parameter name: must end in `_seconds`.
  public mutating func histogram(
    _ name: String, _ help: String, _ histograms: [(labels: [MetricLabel], durations: LatencyHistogram)]
  ) {
    precondition(name.hasSuffix("_seconds"), "a histogram of durations is in seconds")
    family(name, "histogram", help) { samples in
      for (labels, durations) in histograms {
        var sum: UInt64 = 0
        for (bound, count) in zip(LatencyHistogram.bounds.map(Optional.init) + [nil], durations.counts) {
          sum &+= count
          let text = bound.map { Exposition.text(Double($0) / Exposition.nanosecondsPerSecond) } ?? "+Inf"
          samples.add(sum, labels + [MetricLabel("le", text)], suffix: "_bucket")
        }
        samples.add(Double(durations.sum) / Exposition.nanosecondsPerSecond, labels, suffix: "_sum")
        samples.add(sum, labels, suffix: "_count")
      }
    }
  }

  /// The samples of one family.
  public struct Samples {
    fileprivate let name: String
    fileprivate var octets: [UInt8]

    public mutating func add(_ value: some BinaryInteger, _ labels: [MetricLabel] = []) {
      write(labels, suffix: "", "\(value)")
    }

    /// Adds a sample with a floating-point value.
    public mutating func add(_ value: Double, _ labels: [MetricLabel] = []) {
      write(labels, suffix: "", Exposition.text(value))
    }

    /// Adds one sample a value, which stands behind the label's text.
    mutating func add(by label: String, _ values: [(String, UInt64)]) {
      for (text, value) in values { add(value, [MetricLabel(label, text)]) }
    }

    fileprivate mutating func add(_ value: UInt64, _ labels: [MetricLabel], suffix: String) {
      write(labels, suffix: suffix, "\(value)")
    }

    fileprivate mutating func add(_ value: Double, _ labels: [MetricLabel], suffix: String) {
      write(labels, suffix: suffix, Exposition.text(value))
    }

    private mutating func write(_ labels: [MetricLabel], suffix: String, _ value: String) {
      octets += name.utf8
      octets += suffix.utf8
      for (index, label) in labels.enumerated() {
        precondition(Exposition.isName(label.name, colons: false), "not a label's name: \(label.name)")
        octets.append(UInt8(ascii: index == 0 ? "{" : ","))
        octets += label.name.utf8
        octets += "=\"".utf8
        Exposition.append(label.value, to: &octets, escapesQuotes: true)
        octets.append(UInt8(ascii: "\""))
      }
      if !labels.isEmpty { octets.append(UInt8(ascii: "}")) }
      octets.append(UInt8(ascii: " "))
      octets += value.utf8
      octets.append(UInt8(ascii: "\n"))
    }
  }

  private mutating func family(_ name: String, _ type: String, _ help: String, _ write: (inout Samples) -> Void) {
    precondition(Exposition.isName(name, colons: true), "not a metric's name: \(name)")
    precondition(names.insert(name).inserted, "a metric family is added twice: \(name)")
    octets += "# HELP \(name) ".utf8
    Exposition.append(help, to: &octets, escapesQuotes: false)
    octets += "\n# TYPE \(name) \(type)\n".utf8
    // Moves the buffer in and out: a second reference would copy the page for each family.
    var samples = Samples(name: name, octets: [])
    swap(&samples.octets, &octets)
    write(&samples)
    swap(&samples.octets, &octets)
  }

  /// Appends escaped text. Help texts are unquoted, so quotes in them need no escape.
  private static func append(_ text: String, to octets: inout [UInt8], escapesQuotes: Bool) {
    for octet in text.utf8 {
      switch octet {
      case UInt8(ascii: "\\"): octets += [octet, octet]
      case UInt8(ascii: "\n"): octets += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
      case UInt8(ascii: "\"") where escapesQuotes: octets += [UInt8(ascii: "\\"), octet]
      default: octets.append(octet)
      }
    }
  }

  /// Formats a finite number in Swift's shortest form, which Go's parser reads; other values get Prometheus' names.
  static func text(_ value: Double) -> String {
    if value.isNaN { return "NaN" }
    if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
    return "\(value)"
  }

  private static func isName(_ name: String, colons: Bool) -> Bool {
    guard let first = name.utf8.first, !(48...57).contains(first) else { return false }
    return name.utf8.allSatisfy { octet in
      let letter = octet | 0x20
      return (97...122).contains(letter) && octet != 0x20 || (48...57).contains(octet) || octet == UInt8(ascii: "_")
        || colons && octet == UInt8(ascii: ":")
    }
  }
}
