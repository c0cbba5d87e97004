// TextTests.swift -- durations and times as text.

import Telemetry
import Testing

@Suite struct TextTests {
  @Test func `each precision of a duration has its text`() {
    let duration = Duration.microseconds(1_999)
    #expect(TimeText.tenths(duration) == "1.9" && TimeText.thousandths(duration) == "1.999")
    #expect(TimeText.milliseconds(duration) == "2.0 ms" && TimeText.thousandths(.microseconds(-7)) == "0.000")
    #expect(TimeText.tenths(.zero) == "0.0" && TimeText.thousandths(.nanoseconds(5_042_999)) == "5.042")
  }

  @Test func `a time of whole seconds has no fraction`() {
    #expect(LogTime.text(unixTime: 0) == "1970-01-01T00:00:00Z")
    #expect(LogTime.text(unixTime: 951_782_399) == "2000-02-28T23:59:59Z")
    // Beyond the range of nanoseconds.
    #expect(LogTime.text(unixTime: 32_503_680_000) == "3000-01-01T00:00:00Z")
  }
}
