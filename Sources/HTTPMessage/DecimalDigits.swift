// DecimalDigits.swift -- numbers in the heads of requests and responses.

/// Writes numbers in decimal digits, without allocation.
public enum DecimalDigits {
  /// The most digits of a number.
  public static var longest: Int { 19 }

  /// Writes a number that is not negative.
  ///
  /// - Parameter begin: where the first digit goes; the output has room for `longest` octets from there.
  /// - Returns: where the number ends.
  /// - Complexity: O(digits)
  public static func write(_ number: Int, to output: UnsafeMutableBufferPointer<UInt8>, at begin: Int = 0) -> Int {
    var end = begin
    var rest = number
    repeat {
      end += 1
      rest /= 10
    } while rest > 0
    rest = number
    for place in (begin..<end).reversed() {
      output[place] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
    }
    return end
  }
}
