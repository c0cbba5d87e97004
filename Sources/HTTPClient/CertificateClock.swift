// CertificateClock.swift -- the time by which certificates are checked while the machine's own clock cannot be right.
//
// A machine without a battery for its clock starts in 1970. No certificate is valid then, and the names of the time
// servers that would help come from us.

import CProcess
import EventLoop
import Glibc
import Synchronization

/// What is known of the time beside the machine's wall clock. Any thread.
public final class CertificateClock: Sendable {
  /// The day of the build, in seconds since 1970: it cannot be earlier than that.
  public let buildTime: Int64
  private let wallTime: @Sendable () -> Int64
  private let learned = Mutex<(time: Int64, at: BootInstant)?>(nil)

  /// - Parameters:
  ///   - buildTime: seconds since 1970.
  ///   - wallTime: the machine's clock, in seconds since 1970.
  public init(
    buildTime: Int64 = CertificateClock.dayOfBuild,
    wallTime: @escaping @Sendable () -> Int64 = { Int64(time(nil)) }
  ) {
    self.buildTime = buildTime
    self.wallTime = wallTime
  }

  /// Whether the machine's clock can be right.
  public var isWallTimePlausible: Bool { wallTime() >= buildTime }

  /// Whether the time is known: by the machine's clock, or because a response over TLS has told it.
  public var isTimeKnown: Bool { isWallTimePlausible || learned.withLock { $0 != nil } }

  /// The time to check certificates by, in seconds since 1970; nil for the machine's clock.
  ///
  /// - Parameter now: the boot-time clock, by which a time that was learned goes on.
  public func checkTime(now: BootInstant) -> Int64? {
    guard !isWallTimePlausible else { return nil }
    let known = learned.withLock { $0 }.map { $0.time + (now - $0.at).nanoseconds / 1_000_000_000 }
    return max(buildTime, known ?? buildTime)
  }

  /// Takes the `Date` of a response over TLS. It never leads back: an old certificate would become valid again.
  public func learn(_ date: Int64, now: BootInstant) {
    guard !isWallTimePlausible, date > checkTime(now: now) ?? .max else { return }
    learned.withLock { $0 = (date, now) }
  }

  /// The beginning of the day on which this program was built, where that day begins first, in seconds since 1970: the
  /// compiler's day is that of its own time zone.
  public static let dayOfBuild: Int64 = (seconds(of: String(cString: process_build_date())) ?? 0) - earliestZone
  /// How much earlier than in UTC a day begins at most, in seconds.
  private static let earliestZone: Int64 = 14 * 3600

  /// Seconds since 1970 of a day in C's form, `Nov  1 2026`.
  static func seconds(of day: String) -> Int64? {
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let fields = day.split(separator: " ")
    guard fields.count == 3, let month = months.firstIndex(of: String(fields[0])), let day = Int32(fields[1]),
      let year = Int32(fields[2])
    else { return nil }
    var parts = tm()
    parts.tm_year = year - 1900
    parts.tm_mon = Int32(month)
    parts.tm_mday = day
    return Int64(timegm(&parts))
  }
}
