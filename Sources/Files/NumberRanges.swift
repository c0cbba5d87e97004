// NumberRanges.swift -- the ranges of numbers that come from files, stores, servers and clocks.
//
// A number that is believed as it stands ends the program where it is added to or multiplied, perhaps at every start. So
// each of them is read with its range, and what is outside is not read.

/// The ranges of numbers from outside.
public enum NumberRange {
  /// Days since 1970, to the end of the year 9999.
  public static let days: ClosedRange<Int64> = 0...2_932_896
  /// Seconds since 1970, to the end of the year 9999.
  public static let seconds: ClosedRange<Int64> = 0...253_402_300_799
  /// Milliseconds since 1970, to the end of the year 9999.
  public static let milliseconds: ClosedRange<Int64> = 0...253_402_300_799_999
  /// Billing units of a day or of several: more than any provider sells.
  public static let units: ClosedRange<Int> = 0...1_000_000_000_000
}

extension StringProtocol {
  /// The text as a decimal number; nil if it is malformed or outside the range.
  public func number<Value: FixedWidthInteger>(in range: ClosedRange<Value>) -> Value? {
    Value(self).flatMap { range.contains($0) ? $0 : nil }
  }
}

extension Comparable {
  /// The value, or the end of the range that is nearer.
  public func clamped(to range: ClosedRange<Self>) -> Self { min(max(self, range.lowerBound), range.upperBound) }
}
