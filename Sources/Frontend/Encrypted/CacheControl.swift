// CacheControl.swift -- the value of Cache-Control with an answer over HTTP.

import DNSWire

/// The value of `Cache-Control` for a DNS response (RFC 8484 section 5.1).
package enum CacheControl {
  /// The most octets of a value: `max-age=` and ten digits.
  package static let longest = 18

  /// Writes `max-age=` and the seconds that the response lives, or `no-store`. Does not allocate.
  ///
  /// - Parameter output: has room for `longest` octets.
  /// - Returns: the number of octets.
  package static func write(
    for response: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableBufferPointer<UInt8>
  ) -> Int {
    let seconds = ResponseLifetime.seconds(of: response.span)
    guard seconds >= 0 else { return output.update(fromContentsOf: "no-store".utf8) }
    var end = output.update(fromContentsOf: "max-age=".utf8)
    var digits = 1
    var rest = seconds / 10
    while rest > 0 {
      digits += 1
      rest /= 10
    }
    end += digits
    rest = seconds
    for index in 1...digits {
      output[end - index] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
    }
    return end
  }
}
