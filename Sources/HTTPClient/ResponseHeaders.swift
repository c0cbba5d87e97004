// ResponseHeaders.swift -- reads the header fields that the daemon uses, in lines from libcurl or as pairs from nghttp2.

import Glibc

/// The header section of one response. Reused for later transfers, so that a repeated content type is not allocated
/// again.
struct ResponseHeaders {
  /// Maximum octets of a header section; a longer one fails the transfer.
  static let limit = 16 * 1024

  /// The major version in the status line.
  private(set) var version = 1
  private(set) var age: Int64?
  private(set) var maxAge: Int64?
  private(set) var date: Int64?
  private(set) var entityTag: String?
  private(set) var lastModified: String?
  private(set) var location: String?
  /// The number of codings of the content, without `chunked`.
  private(set) var codings = 0
  private var retryDelay: Int64?
  private var retryDate: Int64?
  private var hasContentType = false
  private var lastContentType = ""
  private var octets = 0

  /// The content type; empty if there was none.
  var contentType: String { hasContentType ? lastContentType : "" }

  /// Seconds to wait before the next request, from either form of `Retry-After`.
  var retryAfter: Int64? {
    if let retryDelay { return retryDelay }
    guard let retryDate, let date else { return nil }
    return max(0, retryDate - date)
  }

  /// Clears the previous response.
  mutating func reset() {
    version = 1
    age = nil
    maxAge = nil
    date = nil
    entityTag = nil
    lastModified = nil
    location = nil
    codings = 0
    retryDelay = nil
    retryDate = nil
    hasContentType = false
    octets = 0
  }

  /// Clears the fields of an interim response, whose octets count on.
  mutating func beginSection(httpVersion: Int) {
    let sum = octets
    reset()
    octets = sum
    version = httpVersion
  }

  /// Parses one line including its line end: a status line, a field line or the empty line.
  ///
  /// - Returns: false if the section exceeds `limit`.
  mutating func take(_ line: Span<UInt8>) -> Bool {
    octets += line.count
    guard octets <= Self.limit else { return false }
    // An interim response (1xx) precedes the final one and has its own status line.
    if line.count >= 6, line[4] == UInt8(ascii: "/"), line.hasPrefix("http") {
      beginSection(httpVersion: line[5] == UInt8(ascii: "2") ? 2 : 1)
      return true
    }
    var colon = 0
    while colon < line.count, line[colon] != UInt8(ascii: ":") { colon += 1 }
    if colon < line.count { note(line.extracting(..<colon), line.value(from: colon + 1)) }
    return true
  }

  /// Takes one field.
  ///
  /// - Returns: false if the section exceeds `limit`.
  mutating func take(_ name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
    octets += name.count + value.count
    guard octets <= Self.limit else { return false }
    note(name, value.trimmed)
    return true
  }

  /// Counts the octets of a field that has no meaning.
  ///
  /// - Returns: false if the section exceeds `limit`.
  mutating func skip(_ count: Int) -> Bool {
    octets += count
    return octets <= Self.limit
  }

  private mutating func note(_ name: Span<UInt8>, _ value: Span<UInt8>) {
    switch name.count {
    case 3 where name.hasPrefix("age"): age = value.number(from: 0)
    case 4 where name.hasPrefix("etag"):
      entityTag = value.text
    case 4 where name.hasPrefix("date"): date = httpDate(value)
    case 8 where name.hasPrefix("location"): location = value.text
    case 11 where name.hasPrefix("retry-after"):
      retryDelay = value.number(from: 0)
      if retryDelay == nil { retryDate = httpDate(value) }
    case 12 where name.hasPrefix("content-type"): noteContentType(value)
    case 13 where name.hasPrefix("cache-control"): noteCacheControl(value)
    case 13 where name.hasPrefix("last-modified"): lastModified = value.text
    case 16 where name.hasPrefix("content-encoding"), 17 where name.hasPrefix("transfer-encoding"):
      codings += value.count == 7 && value.hasPrefix("chunked") ? 0 : value.items
    default: break
    }
  }

  private mutating func noteContentType(_ value: Span<UInt8>) {
    hasContentType = true
    if value.equals(lastContentType) { return }
    lastContentType = value.text
  }

  /// RFC 9111 section 5.2: directives separated by commas. `no-store` and `no-cache` address HTTP caches and do not limit the
  /// lifetime of a DNS answer. The first number counts if `max-age` comes twice (section 4.2.1).
  private mutating func noteCacheControl(_ value: Span<UInt8>) {
    var start = 0
    while start < value.count {
      var end = start
      while end < value.count, value[end] != UInt8(ascii: ",") { end += 1 }
      let directive = value.extracting(start..<end).trimmed
      if maxAge == nil, directive.hasPrefix("max-age=") { maxAge = directive.wholeNumber(from: 8) }
      start = end + 1
    }
  }
}

extension Span<UInt8> {
  /// Whether the octets begin with a text, ignoring case. The text must be in lower case.
  func hasPrefix(_ text: StaticString) -> Bool {
    let length = text.utf8CodeUnitCount
    guard count >= length else { return false }
    for index in 0..<length {
      let octet = self[index]
      let lower = octet &- UInt8(ascii: "A") < 26 ? octet | 0x20 : octet
      guard lower == text.utf8Start[index] else { return false }
    }
    return true
  }

  /// Whether the octets equal a text.
  func equals(_ text: String) -> Bool {
    guard text.utf8.count == count else { return false }
    // Octets that are none may have no address.
    guard count > 0 else { return true }
    var text = text
    return text.withUTF8 { octets in withUnsafeBytes { memcmp(octets.baseAddress!, $0.baseAddress!, count) == 0 } }
  }

  fileprivate var text: String { withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) } }

  /// The number of items of a list with commas.
  fileprivate var items: Int {
    var count = 1
    for index in indices where self[index] == UInt8(ascii: ",") { count += 1 }
    return count
  }

  /// The octets without leading and trailing white space.
  var trimmed: Span<UInt8> {
    @_lifetime(copy self)
    get { value(from: 0) }
  }

  /// The octets from an index on, without leading and trailing white space.
  @_lifetime(copy self)
  func value(from start: Int) -> Span<UInt8> {
    var first = start
    var end = count
    while first < end, self[first] <= 0x20 { first += 1 }
    while first < end, self[end - 1] <= 0x20 { end -= 1 }
    return extracting(first..<end)
  }

  /// The same with a decimal fraction, which is cut off: AdGuard's servers write `max-age=300.000000`.
  fileprivate func wholeNumber(from start: Int) -> Int64? {
    let text = value(from: start)
    var point = 0
    while point < text.count, text[point] != UInt8(ascii: ".") { point += 1 }
    guard point < text.count else { return text.number(from: 0) }
    for index in (point + 1)..<text.count where text[index] &- UInt8(ascii: "0") >= 10 { return nil }
    return point + 1 < text.count ? text.extracting(..<point).number(from: 0) : nil
  }

  /// Parses the octets from an index on as a decimal number of at most ten digits; nil for anything else.
  func number(from start: Int) -> Int64? {
    let digits = value(from: start)
    guard (1...10).contains(digits.count) else { return nil }
    var number: Int64 = 0
    for index in digits.indices {
      let digit = digits[index] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      number = number * 10 + Int64(digit)
    }
    return number
  }
}
