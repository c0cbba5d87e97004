// CacheControl.swift -- the value of Cache-Control with an answer over HTTP.

import DNSWire
import HTTPMessage

/// The value of `Cache-Control` for a DNS response (RFC 8484 section 5.1).
package enum CacheControl {
  /// The most octets of a value: `max-age=` and a number.
  package static let longest = 8 + DecimalDigits.longest

  /// Writes `max-age=` and the seconds that the response lives, or `no-store`. Does not allocate.
  ///
  /// - Parameter output: has room for `longest` octets.
  /// - Returns: the number of octets.
  package static func write(
    for response: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableBufferPointer<UInt8>
  ) -> Int {
    let seconds = ResponseLifetime.seconds(of: response.span)
    guard seconds >= 0 else { return output.update(fromContentsOf: "no-store".utf8) }
    return DecimalDigits.write(seconds, to: output, at: output.update(fromContentsOf: "max-age=".utf8))
  }
}
