// LatencyHistogram.swift -- counts durations in fixed buckets.

/// Durations counted in buckets from 10 µs to 5 s.
///
/// Two histograms of the same build can be added, and an earlier reading subtracted from a later one.
public struct LatencyHistogram: Sendable, Equatable {
  /// The upper bounds in nanoseconds of all buckets except the last, which has none.
  public static let bounds: [Int64] = [
    10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000,
    50_000_000, 100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000,
  ]
  public static let bucketCount = bounds.count + 1

  /// The number of durations in each bucket: above the previous bound, up to and including its own.
  public private(set) var counts: [UInt64]
  /// The sum of all durations, in nanoseconds.
  public private(set) var sum: UInt64
  /// The longest duration, in nanoseconds; after a subtraction, an upper bound of it.
  public private(set) var longest: UInt64

  public init() { self.init(counts: Array(repeating: 0, count: LatencyHistogram.bucketCount), sum: 0, longest: 0) }

  /// Durations are in nanoseconds.
  ///
  /// - Precondition: `counts` has an element for each bucket.
  public init(counts: [UInt64], sum: UInt64, longest: UInt64) {
    precondition(counts.count == LatencyHistogram.bucketCount)
    self.counts = counts
    self.sum = sum
    self.longest = longest
  }

  /// The number of durations.
  public var count: UInt64 { counts.reduce(0, &+) }

  /// The mean of all durations; nil if there are none.
  public var mean: Duration? { count == 0 ? nil : .nanoseconds(Int64(clamping: sum / count)) }

  /// Counts a duration; a negative one counts as 0.
  public mutating func observe(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    let nanoseconds = seconds < 0 || attoseconds < 0 ? 0 : seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    let bucket = LatencyHistogram.bounds.firstIndex { nanoseconds <= $0 } ?? LatencyHistogram.bounds.count
    counts[bucket] &+= 1
    sum &+= UInt64(nanoseconds)
    longest = max(longest, UInt64(nanoseconds))
  }

  /// The duration that `fraction` of all durations do not exceed, interpolated within its bucket as Prometheus does, and at
  /// most `longest`. In the last bucket it is the last bound. Nil if there are no durations.
  ///
  /// - Precondition: `fraction` is in 0...1.
  public func quantile(_ fraction: Double) -> Duration? {
    precondition((0...1).contains(fraction))
    guard count > 0 else { return nil }
    let rank = fraction * Double(count)
    var below = 0.0
    for (bucket, upper) in LatencyHistogram.bounds.enumerated() {
      let inside = Double(counts[bucket])
      if inside > 0, below + inside >= rank {
        let lower = bucket == 0 ? 0 : Double(LatencyHistogram.bounds[bucket - 1])
        let part = max(0, rank - below) / inside
        return .nanoseconds(min(Int64(lower + (Double(upper) - lower) * part), Int64(clamping: longest)))
      }
      below += inside
    }
    return .nanoseconds(LatencyHistogram.bounds.last!)
  }

  /// The durations of both.
  public static func + (left: LatencyHistogram, right: LatencyHistogram) -> LatencyHistogram {
    LatencyHistogram(
      counts: zip(left.counts, right.counts).map { $0 &+ $1 }, sum: left.sum &+ right.sum,
      longest: max(left.longest, right.longest))
  }

  /// The durations between an earlier and a later reading.
  public static func - (later: LatencyHistogram, earlier: LatencyHistogram) -> LatencyHistogram {
    let counts = zip(later.counts, earlier.counts).map { $0 > $1 ? $0 - $1 : 0 }
    return LatencyHistogram(
      counts: counts, sum: later.sum > earlier.sum ? later.sum - earlier.sum : 0,
      longest: counts.contains { $0 > 0 } ? later.longest : 0)
  }
}
