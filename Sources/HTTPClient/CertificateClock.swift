// CertificateClock.swift -- the time for certificate checks while the system clock is implausible.
//
// A machine without a battery-backed clock starts in 1970. No certificate is valid then, and the daemon itself resolves
// the names of the time servers that would set the clock.

import CProcess
import EventLoop
import Glibc
import Synchronization

/// Estimates the time if the system clock is before the build date. Any thread.
public final class CertificateClock: Sendable {
  /// The build date in seconds since 1970. No plausible time is earlier.
  public let buildTime: Int64
  private let wallTime: @Sendable () -> Int64
  private let learned = Mutex<(time: Int64, at: BootInstant)?>(nil)

  /// Creates a clock that has learned no time.
  ///
  /// - Parameters:
  ///   - buildTime: seconds since 1970.
  ///   - wallTime: returns the system clock in seconds since 1970.
  public init(
    buildTime: Int64 = CertificateClock.dayOfBuild,
    wallTime: @escaping @Sendable () -> Int64 = { Int64(time(nil)) }
  ) {
    self.buildTime = buildTime
    self.wallTime = wallTime
  }

  /// Whether the system clock is not before the build date.
  public var isWallTimePlausible: Bool { wallTime() >= buildTime }

  /// Whether the time is known: the system clock is plausible, or a response over TLS had a `Date`.
  public var isTimeKnown: Bool { isWallTimePlausible || learned.withLock { $0 != nil } }

  /// Returns the time for certificate checks in seconds since 1970; nil means the system clock.
  ///
  /// - Parameter now: the boot-time clock, which advances the learned time.
  public func checkTime(now: BootInstant) -> Int64? {
    guard !isWallTimePlausible else { return nil }
    let known = learned.withLock { $0 }.map { $0.time + (now - $0.at).nanoseconds / 1_000_000_000 }
    return max(buildTime, known ?? buildTime)
  }

  /// Learns the `Date` of a response over TLS. The time never moves back, because an expired certificate would be valid
  /// again.
  public func learn(_ date: Int64, now: BootInstant) {
    guard !isWallTimePlausible, date > checkTime(now: now) ?? .max, date <= buildTime + Self.longestLife else { return }
    learned.withLock { $0 = (date, now) }
  }

  /// The build date in seconds since 1970: the start of the compiler's day in the earliest time zone, because
  /// `__DATE__` is in the compiler's local time.
  public static let dayOfBuild: Int64 = (seconds(of: String(cString: process_build_date())) ?? 0) - earliestZone
  /// Seconds by which a day starts earlier than in UTC, in the earliest time zone.
  private static let earliestZone: Int64 = 14 * 3600

  /// Seconds after the build for which a `Date` is believed: a later one would let no certificate be valid any more.
  private static let longestLife: Int64 = 20 * 365 * 86_400

  /// Parses a day in C's form, `Nov  1 2026`, into seconds since 1970.
  static func seconds(of day: String) -> Int64? {
    let fields = day.split(separator: " ")
    guard fields.count == 3, fields[0].utf8.count == 3, let month = month(Array(fields[0].utf8).span),
      let day = Int64(fields[1]), let year = Int64(fields[2])
    else { return nil }
    return daysSince1970(year: year, month: month, day: day) * 86_400
  }
}
