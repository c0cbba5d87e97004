// DecimalDigitsTests.swift -- numbers in decimal digits.

import HTTPMessage
import Testing

@Suite struct DecimalDigitsTests {
  @Test(arguments: [0, 1, 9, 10, 99, 100, 65_535, 4_294_967_295, .max])
  func `a number is written from its place on, and nothing before or behind it`(number: Int) {
    let place = 2
    let written = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: place + DecimalDigits.longest) { output in
      output.initialize(repeating: UInt8(ascii: "-"))
      let end = DecimalDigits.write(number, to: output, at: place)
      return (String(decoding: output[..<end], as: UTF8.self), output[end...].allSatisfy { $0 == UInt8(ascii: "-") })
    }
    #expect(written.0 == "--\(number)" && written.1)
  }
}
