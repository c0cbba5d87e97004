// TimeText.swift -- durations as text, one function for each precision.

/// Durations as human-readable text, and as numbers of milliseconds.
public enum TimeText {
  /// The largest unit and the next one if it is not zero, such as `3 min 20 s`; fractions of a second are dropped.
  public static func rough(_ duration: Duration) -> String {
    let seconds = max(0, duration.components.seconds)
    let parts = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")]
    let first = parts.firstIndex { $0.0 > 0 } ?? 3
    return parts[first...].prefix(2).filter { $0.0 > 0 || first == 3 }.map { "\($0.0) \($0.1)" }.joined(separator: " ")
  }

  /// A time that has to pass, rounded up to a whole second: `0 s` means now.
  public static func wait(_ duration: Duration) -> String {
    rough(.seconds(duration.components.seconds + (duration.components.attoseconds > 0 ? 1 : 0)))
  }

  /// Microseconds below a millisecond, else milliseconds. `us`, because a terminal with the C locale has no µ.
  public static func fine(_ duration: Duration) -> String {
    duration < .milliseconds(1) ? "\((nanoseconds(duration) + 500) / 1000) us" : milliseconds(duration)
  }

  /// Milliseconds, below 100 with one decimal place.
  public static func milliseconds(_ duration: Duration) -> String {
    let tenths = (nanoseconds(duration) + 50_000) / 100_000
    return tenths < 1000 ? "\(tenths / 10).\(tenths % 10) ms" : "\((nanoseconds(duration) + 500_000) / 1_000_000) ms"
  }

  /// Milliseconds with one decimal place, rounded down and without the unit: a valid JSON number.
  public static func tenths(_ duration: Duration) -> String {
    let tenths = nanoseconds(duration) / 100_000
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// Milliseconds with three decimal places, without the unit: a valid JSON number. Negative durations become 0.
  public static func thousandths(_ duration: Duration) -> String {
    let microseconds = max(0, nanoseconds(duration) / 1000)
    let rest = String(microseconds % 1000)
    return "\(microseconds / 1000)." + String(repeating: "0", count: 3 - rest.count) + rest
  }

  /// The duration in nanoseconds, clamped to ±292 years.
  static func nanoseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    return overflow ? (seconds < 0 ? .min : .max) : scaled &+ attoseconds / 1_000_000_000
  }
}
