// NumberRangeTests.swift -- numbers from outside are read with their range.

import Files
import Testing

@Suite struct `A number from outside` {
  @Test(arguments: ["0", "5", "9"]) func `is read within its range`(text: String) {
    #expect(text.number(in: 0...9) == Int(text))
    #expect("-\(text)".number(in: -9...0 as ClosedRange<Int64>) == Int64(text).map { -$0 })
  }

  @Test(arguments: [
    "", "-1", "10", "1.5", "0x5", " 5", "9223372036854775807", "9223372036854775808", "99999999999999999999",
  ])
  func `is nil outside of it, or if it is malformed`(text: String) {
    #expect(text.number(in: 0...9) == nil)
  }

  @Test func `is brought to the nearer end`() {
    #expect(Int64.max.clamped(to: NumberRange.days) == NumberRange.days.upperBound)
    #expect(Int64.min.clamped(to: NumberRange.days) == 0)
    #expect((20_000 as Int64).clamped(to: NumberRange.days) == 20_000)
  }
}
