// LogTime.swift -- when an event happened, as log lines say it.

import Glibc

/// A moment of the wall clock, in nanoseconds since 1970.
public struct LogTime: Sendable, Equatable {
  /// Nanoseconds since 1970-01-01T00:00:00Z.
  public var nanoseconds: Int64

  /// That moment.
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// The present.
  public static var now: LogTime {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return LogTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  /// RFC 3339 in UTC with milliseconds: `2026-11-21T09:36:19.042Z`.
  public var text: String {
    var seconds = time_t(nanoseconds / 1_000_000_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    var octets: [UInt8] = []
    octets.reserveCapacity(24)
    func append(_ number: Int, digits: Int, _ after: Character) {
      var divisor = 1
      for _ in 1..<digits { divisor *= 10 }
      while divisor > 0 {
        octets.append(UInt8(ascii: "0") + UInt8(number / divisor % 10))
        divisor /= 10
      }
      octets += String(after).utf8
    }
    append(Int(parts.tm_year) + 1900, digits: 4, "-")
    append(Int(parts.tm_mon) + 1, digits: 2, "-")
    append(Int(parts.tm_mday), digits: 2, "T")
    append(Int(parts.tm_hour), digits: 2, ":")
    append(Int(parts.tm_min), digits: 2, ":")
    append(Int(parts.tm_sec), digits: 2, ".")
    append(Int(nanoseconds % 1_000_000_000) / 1_000_000, digits: 3, "Z")
    return String(decoding: octets, as: UTF8.self)
  }
}
