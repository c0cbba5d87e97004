// TimeText.swift -- lengths of time as text, one function for each precision.

/// Lengths of time for people, and in milliseconds.
public enum TimeText {
  /// The two largest units that say something, such as `3 min 20 s`; nothing below a second.
  public static func rough(_ duration: Duration) -> String {
    let seconds = max(0, duration.components.seconds)
    let parts = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")]
    let first = parts.firstIndex { $0.0 > 0 } ?? 3
    return parts[first...].prefix(2).filter { $0.0 > 0 || first == 3 }.map { "\($0.0) \($0.1)" }
      .joined(separator: " ")
  }

  /// Microseconds below a millisecond, else milliseconds.
  public static func fine(_ duration: Duration) -> String {
    duration < .milliseconds(1) ? "\((nanoseconds(duration) + 500) / 1000) µs" : milliseconds(duration)
  }

  /// Milliseconds with one digit behind the point below a hundred.
  public static func milliseconds(_ duration: Duration) -> String {
    let tenths = (nanoseconds(duration) + 50_000) / 100_000
    return tenths < 1000 ? "\(tenths / 10).\(tenths % 10) ms" : "\((nanoseconds(duration) + 500_000) / 1_000_000) ms"
  }

  /// Whole tenths of a millisecond that are over, in milliseconds and without the unit: also a number in JSON.
  public static func tenths(_ duration: Duration) -> String {
    let tenths = nanoseconds(duration) / 100_000
    return "\(tenths / 10).\(tenths % 10)"
  }

  /// Milliseconds with three places, without the unit: also a number in JSON. Nothing is below 0.
  public static func thousandths(_ duration: Duration) -> String {
    let microseconds = max(0, nanoseconds(duration) / 1000)
    let rest = String(microseconds % 1000)
    return "\(microseconds / 1000)." + String(repeating: "0", count: 3 - rest.count) + rest
  }

  /// The whole duration in nanoseconds; a duration of more than 292 years is cut to that.
  static func nanoseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    return overflow ? (seconds < 0 ? .min : .max) : scaled &+ attoseconds / 1_000_000_000
  }
}
