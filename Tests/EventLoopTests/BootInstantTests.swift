// BootInstantTests.swift -- durations in nanoseconds, and the time between two instants.

import EventLoop
import Testing

@Suite struct BootInstantTests {
  @Test(
    arguments: [
      (.zero, 0), (.nanoseconds(1), 1), (.nanoseconds(-1), -1), (.seconds(9), 9_000_000_000),
      (.seconds(10) + .nanoseconds(3), 10_000_000_003), (.seconds(-10) - .nanoseconds(3), -10_000_000_003),
      (Duration(secondsComponent: 0, attosecondsComponent: 1_999_999_999), 1),
      (Duration(secondsComponent: 100, attosecondsComponent: 999_999_999), 100_000_000_000),
      (Duration(secondsComponent: -100, attosecondsComponent: -999_999_999), -100_000_000_000),
      (.seconds(1 << 60), .max), (.seconds(-1 << 60), .min),
    ] as [(Duration, Int64)])
  func `a duration is truncated to nanoseconds, and clamped`(duration: Duration, nanoseconds: Int64) {
    #expect(duration.nanoseconds == nanoseconds)
  }

  @Test(arguments: [0, 1, -1, 8_999_999_999, 9_300_000_000, -9_300_000_000, 1 << 62, .max, -.max] as [Int64])
  func `an instant and a duration give the other instant`(nanoseconds: Int64) {
    let begin = BootInstant(nanoseconds: 0)
    let end = BootInstant(nanoseconds: nanoseconds)
    #expect(end - begin == .nanoseconds(nanoseconds))
    #expect(begin + (end - begin) == end)
  }
}
