// Backoff.swift -- how long a store that failed is not asked, and what counts as a failure. No clock of its own.

import EventLoop

/// The pauses between attempts: 1, 2, 4 … 30 seconds, each ±20 %.
struct Backoff {
  /// The longest pause, before it is varied.
  static let longest = Duration.seconds(30)
  private var pause = Duration.seconds(1)

  /// Returns the pause after another failure.
  mutating func next(using random: inout some RandomNumberGenerator) -> Duration {
    defer { pause = min(pause * 2, Backoff.longest) }
    return pause * Double.random(in: 0.8...1.2, using: &random)
  }

  /// Begins with the shortest pause again.
  mutating func reset() { pause = .seconds(1) }
}

/// The timeouts of the last seconds.
struct TimeoutWindow {
  /// So many timeouts within `span` are a failure of the store.
  static let limit = 3
  static let span = Duration.seconds(10)
  private var times: [BootInstant] = []

  /// Counts a timeout; returns whether the limit is reached.
  mutating func add(_ time: BootInstant) -> Bool {
    times.removeAll { time - $0 > TimeoutWindow.span }
    times.append(time)
    return times.count >= TimeoutWindow.limit
  }

  /// Forgets all of them.
  mutating func reset() { times = [] }
}

/// The median of the last latencies.
struct MovingMedian {
  private static let size = 31
  private var samples: [Duration] = []
  private var oldest = 0

  /// Adds a latency in the place of the oldest.
  mutating func add(_ sample: Duration) {
    if samples.count < MovingMedian.size { return samples.append(sample) }
    samples[oldest] = sample
    oldest = (oldest + 1) % MovingMedian.size
  }

  /// The median; nil without any latency.
  var value: Duration? { samples.isEmpty ? nil : samples.sorted()[samples.count / 2] }
}
