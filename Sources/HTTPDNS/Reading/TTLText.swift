// TTLText.swift -- TTLs as services write them: in decimal, as numbers or strings of JSON or between commas.

import JSON

/// The largest TTL (RFC 2181 section 8).
private let longestTTL = UInt32(Int32.max)

/// The effective TTL of a number in a message: a value with the most significant bit set counts as 0 (RFC 2181 section 8).
func ttlValue(_ ttl: UInt32) -> UInt32 { ttl > longestTTL ? 0 : ttl }

/// The TTL that a text states, in seconds; nil for an empty text. A negative one is 0, a fraction is cut off, and one that is
/// too large is the largest (RFC 8767 section 4), which the cache shortens to its own maximum.
///
/// - Throws: `.unreadable(.number)` for a text without such a number: it may be of another form altogether.
func ttl(in text: some Collection<UInt8>) throws(HTTPDNSFailure) -> UInt32? {
  guard !text.isEmpty else { return nil }
  let isNegative = text.first == hyphen
  let parts = (isNegative ? text.dropFirst() : text[...]).split(
    separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
  guard parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(isDigit) }), let whole = parts.first else {
    throw .unreadable(.number)
  }
  guard !isNegative else { return 0 }
  var seconds: UInt32 = 0
  for digit in whole {
    let (product, isTooLarge) = seconds.multipliedReportingOverflow(by: 10)
    guard !isTooLarge, product <= longestTTL else { return longestTTL }
    seconds = product + UInt32(digit - UInt8(ascii: "0"))
  }
  return min(seconds, longestTTL)
}

private let hyphen = UInt8(ascii: "-")

private func isDigit(_ octet: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(octet) }

extension JSONValue {
  /// The TTL that a number or a string states, as above.
  var ttl: UInt32? {
    get throws(HTTPDNSFailure) {
      if let octets { return try HTTPDNS.ttl(in: octets) }
      guard let number = real else { throw .unreadable(.number) }
      return UInt32(min(max(number, 0), Double(longestTTL)))
    }
  }
}
