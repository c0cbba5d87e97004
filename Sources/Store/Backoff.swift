// Backoff.swift -- retry intervals, the number of timeouts that is a failure, and the median latency. Pure: callers
// pass the time.

import EventLoop

/// Retry intervals: 1, 2, 4 … 30 seconds, each ±20 %.
struct Backoff {
  /// The longest interval, without jitter.
  static let longest = Duration.seconds(30)
  private var pause = Duration.seconds(1)

  /// Returns the interval after another failure.
  mutating func next(using random: inout some RandomNumberGenerator) -> Duration {
    defer { pause = min(pause * 2, Backoff.longest) }
    return pause * Double.random(in: 0.8...1.2, using: &random)
  }

  /// Starts again with the shortest interval.
  mutating func reset() { pause = .seconds(1) }
}

/// Counts timeouts in a sliding window.
struct TimeoutWindow {
  /// This many timeouts within `span` are a failure of the store.
  static let limit = 3
  static let span = Duration.seconds(10)
  private var times: [BootInstant] = []

  /// Counts a timeout; returns whether the limit is reached.
  mutating func add(_ time: BootInstant) -> Bool {
    times.removeAll { time - $0 > TimeoutWindow.span }
    times.append(time)
    return times.count >= TimeoutWindow.limit
  }

  mutating func reset() { times = [] }
}

/// The median of the last 31 latencies.
struct MovingMedian {
  private static let size = 31
  private var samples: [Duration] = []
  private var oldest = 0

  /// Replaces the oldest latency once there are 31.
  mutating func add(_ sample: Duration) {
    if samples.count < MovingMedian.size { return samples.append(sample) }
    samples[oldest] = sample
    oldest = (oldest + 1) % MovingMedian.size
  }

  /// Nil before the first latency.
  var value: Duration? { samples.isEmpty ? nil : samples.sorted()[samples.count / 2] }
}
