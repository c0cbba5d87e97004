// LatencyHistogramTests.swift -- buckets, sums and quantiles.

import Telemetry
import Testing

@Suite struct LatencyHistogramTests {
  @Test func `a duration equal to a bound is in that bound's bucket`() {
    for (index, bound) in LatencyHistogram.bounds.enumerated() {
      var histogram = LatencyHistogram()
      histogram.observe(.nanoseconds(bound))
      #expect(histogram.counts[index] == 1)
      histogram.observe(.nanoseconds(bound + 1))
      #expect(histogram.counts[index + 1] == 1)
    }
  }

  @Test func `the sum is exact and a negative duration counts as 0`() {
    var histogram = LatencyHistogram()
    histogram.observe(.nanoseconds(1_234_567))
    histogram.observe(.seconds(20))
    histogram.observe(.milliseconds(-5))
    #expect(histogram.sum == 20_001_234_567)
    #expect(histogram.count == 3)
    #expect(histogram.counts[0] == 1)
    #expect(histogram.mean == .nanoseconds(6_667_078_189))
  }

  @Test func `an empty histogram has neither mean nor quantile`() {
    #expect(LatencyHistogram().mean == nil)
    #expect(LatencyHistogram().quantile(0.5) == nil)
  }

  @Test func `a quantile is interpolated in its bucket`() {
    var histogram = LatencyHistogram()
    for _ in 0..<90 { histogram.observe(.microseconds(80)) }
    for _ in 0..<9 { histogram.observe(.milliseconds(3)) }
    histogram.observe(.milliseconds(5))
    #expect(histogram.quantile(0.45) == .microseconds(75))
    #expect(histogram.quantile(0.9) == .microseconds(100))
    #expect(histogram.quantile(0.95) == .nanoseconds(3_750_000))
    #expect(histogram.quantile(1) == .milliseconds(5))
  }

  @Test func `a quantile is not above the longest duration`() {
    var histogram = LatencyHistogram()
    histogram.observe(.microseconds(300))
    histogram.observe(.microseconds(260))
    for fraction in [0.5, 0.9, 0.99, 1] { #expect(histogram.quantile(fraction)! <= .microseconds(300)) }
    #expect(histogram.quantile(1) == .microseconds(300))
    var other = LatencyHistogram()
    other.observe(.microseconds(400))
    #expect((histogram + other).quantile(1) == .microseconds(400))
    #expect((histogram + other - other).quantile(1)! <= .microseconds(400))
  }

  @Test func `a quantile beyond the last bound is that bound`() {
    var histogram = LatencyHistogram()
    histogram.observe(.seconds(60))
    #expect(histogram.quantile(0.5) == .seconds(5))
  }

  @Test func `the difference of two readings has the durations between them`() {
    var earlier = LatencyHistogram()
    earlier.observe(.milliseconds(1))
    var later = earlier
    later.observe(.milliseconds(40))
    var between = LatencyHistogram()
    between.observe(.milliseconds(40))
    #expect(later - earlier == between)
    #expect(earlier + between == later)
    // A restarted program has smaller counts.
    #expect(earlier - later == LatencyHistogram())
  }
}
