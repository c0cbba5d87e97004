// LogTime.swift -- the wall-clock time of an event, and its text in log lines.

import Glibc

/// A wall-clock time.
public struct LogTime: Sendable, Equatable {
  /// Nanoseconds since 1970-01-01T00:00:00Z.
  public var nanoseconds: Int64

  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  public static var now: LogTime {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return LogTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// RFC 3339 in UTC with milliseconds: `2026-11-21T09:36:19.042Z`.
  public var text: String {
    let rest = Int(nanoseconds % 1_000_000_000) / 1_000_000
    return LogTime.written(nanoseconds / 1_000_000_000) { octets in
      octets.append(UInt8(ascii: "."))
      LogTime.append(rest, digits: 3, to: &octets)
    }
  }

  /// RFC 3339 in UTC with seconds: `2026-11-21T09:36:19Z`.
  ///
  /// - Parameter unixTime: seconds since 1970.
  public static func text(unixTime: Int64) -> String { written(unixTime) { _ in } }

  private static func written(_ unixTime: Int64, fraction: (inout [UInt8]) -> Void) -> String {
    var seconds = time_t(unixTime)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    var octets: [UInt8] = []
    octets.reserveCapacity(24)
    let numbers = [
      (Int(parts.tm_year) + 1900, 4, "-"), (Int(parts.tm_mon) + 1, 2, "-"), (Int(parts.tm_mday), 2, "T"),
      (Int(parts.tm_hour), 2, ":"), (Int(parts.tm_min), 2, ":"), (Int(parts.tm_sec), 2, ""),
    ]
    for (number, digits, after) in numbers {
      append(number, digits: digits, to: &octets)
      octets += after.utf8
    }
    fraction(&octets)
    octets.append(UInt8(ascii: "Z"))
    return String(decoding: octets, as: UTF8.self)
  }

  private static func append(_ number: Int, digits: Int, to octets: inout [UInt8]) {
    var divisor = 1
    for _ in 1..<digits { divisor *= 10 }
    while divisor > 0 {
      octets.append(UInt8(ascii: "0") + UInt8(number / divisor % 10))
      divisor /= 10
    }
  }
}
