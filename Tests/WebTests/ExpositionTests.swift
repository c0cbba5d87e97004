// ExpositionTests.swift -- the page for a scrape, octet by octet.

import Telemetry
import Testing
import Web

@Suite struct ExpositionTests {
  private func page(_ write: (inout Exposition) -> Void) -> String {
    var exposition = Exposition()
    write(&exposition)
    return String(decoding: exposition.octets, as: UTF8.self)
  }

  @Test func `a counter has its help, its type and its sample`() {
    let text = page { $0.counter("httpdnsd_things_total", "Things.", 7) }
    #expect(
      text == "# HELP httpdnsd_things_total Things.\n# TYPE httpdnsd_things_total counter\nhttpdnsd_things_total 7\n")
  }

  @Test func `labels are written in braces in the given order`() {
    let text = page { page in
      page.gauge("state", "State.") {
        $0.add(1, [MetricLabel("provider", "one"), MetricLabel("state", "up")])
        $0.add(0.25, [MetricLabel("provider", "two")])
      }
    }
    #expect(
      text
        == "# HELP state State.\n# TYPE state gauge\nstate{provider=\"one\",state=\"up\"} 1\nstate{provider=\"two\"} 0.25\n"
    )
  }

  @Test func `quotes, backslashes and line feeds of a label's value are escaped`() {
    let text = page { $0.gauge("g", "h") { $0.add(1, [MetricLabel("l", "a\"b\\c\nd")]) } }
    #expect(text.contains(#"g{l="a\"b\\c\nd"} 1"#))
    #expect(text.split(separator: "\n").count == 3)
  }

  @Test func `a help text escapes line feeds and backslashes, and no quotes`() {
    let text = page { $0.gauge("g", "a\"b\\c\nd", 1) }
    #expect(text.hasPrefix("# HELP g a\"b\\\\c\\nd\n"))
  }

  @Test func `a histogram is cumulative and ends with +Inf, its sum in seconds and its count`() {
    var durations = LatencyHistogram()
    durations.observe(.microseconds(40))
    durations.observe(.microseconds(40))
    durations.observe(.milliseconds(700))
    durations.observe(.seconds(9))
    let text = page { $0.histogram("t_seconds", "Time.", [([MetricLabel("from", "x")], durations)]) }
    let lines = text.split(separator: "\n").map(String.init)
    #expect(lines.count == 2 + LatencyHistogram.bucketCount + 2)
    #expect(lines[1] == "# TYPE t_seconds histogram")
    #expect(lines.contains(#"t_seconds_bucket{from="x",le="2.5e-05"} 0"#))
    #expect(lines.contains(#"t_seconds_bucket{from="x",le="5e-05"} 2"#))
    #expect(lines.contains(#"t_seconds_bucket{from="x",le="0.5"} 2"#))
    #expect(lines.contains(#"t_seconds_bucket{from="x",le="1.0"} 3"#))
    #expect(lines.contains(#"t_seconds_bucket{from="x",le="5.0"} 3"#))
    #expect(lines.contains(#"t_seconds_bucket{from="x",le="+Inf"} 4"#))
    #expect(lines.contains(#"t_seconds_sum{from="x"} 9.70008"#))
    #expect(lines.last == #"t_seconds_count{from="x"} 4"#)
  }

  @Test func `infinite numbers and NaN have Prometheus' names`() {
    let text = page { page in
      page.gauge("g", "h") {
        $0.add(Double.nan)
        $0.add(Double.infinity)
        $0.add(-Double.infinity)
      }
    }
    #expect(text.hasSuffix("g NaN\ng +Inf\ng -Inf\n"))
  }

  @Test func `a family without samples has only help and type`() {
    #expect(page { $0.counter("c_total", "h") { _ in } } == "# HELP c_total h\n# TYPE c_total counter\n")
  }
}
