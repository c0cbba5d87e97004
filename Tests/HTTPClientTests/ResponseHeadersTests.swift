// ResponseHeadersTests.swift -- header lines to values.

import Testing

@testable import HTTPClient

@Suite struct `Header fields` {
  private func read(_ lines: String...) -> ResponseHeaders {
    var headers = ResponseHeaders()
    for line in lines {
      let octets = Array("\(line)\r\n".utf8)
      let isTaken = headers.take(octets.span)
      #expect(isTaken)
    }
    return headers
  }

  @Test func `names are read in either case`() {
    let headers = read(
      "HTTP/1.1 200 OK", "AGE: 1", "cache-control:Max-Age=2", "CONTENT-type:\ttext/plain ", "retry-After: 3")
    #expect(headers.age == 1)
    #expect(headers.maxAge == 2)
    #expect(headers.contentType == "text/plain")
    #expect(headers.retryAfter == 3)
    #expect(headers.version == 1)
  }

  @Test func `an empty content type counts as missing`() {
    #expect(read("HTTP/1.1 200 OK", "Content-Type:").contentType.isEmpty)
    #expect(read("HTTP/1.1 200 OK", "Content-Type: ", "Content-Type: text/plain").contentType == "text/plain")
    #expect(read("HTTP/1.1 200 OK", "Content-Type: text/plain", "Content-Type:").contentType.isEmpty)
  }

  @Test(
    arguments: [
      ("max-age=60", 60), ("public, max-age=60, immutable", 60), ("no-store", nil), ("max-age=60, no-cache", 60),
      ("no-store, max-age=60", 60), ("no-cache", nil), ("max-age=0", 0), ("max-age=9, max-age=0, max-age=7", 9),
      ("max-age=x, max-age=7", 7), ("max-age=300.000000", 300), ("max-age=0.9", 0), ("max-age=12.5, max-age=1", 12),
      ("max-age=300.", nil), ("max-age=.5", nil), ("max-age=1.2.3", nil), ("max-age=1.-2", nil),
      ("max-age=\"60\"", nil),
      ("s-maxage=60", nil), ("max-age=-1", nil), ("max-age=", nil), ("max-age=1e3", nil),
      (",,max-age=7,", 7), ("max-age=99999999999", nil), ("", nil),
    ] as [(String, Int64?)])
  func `Cache-Control gives the time that content is fresh`(value: String, age: Int64?) {
    #expect(read("Cache-Control: \(value)").maxAge == age)
  }

  @Test func `a date in Retry-After counts from the response's own date`() {
    let headers = read("Date: Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After: Sun, 06 Nov 1994 08:51:37 GMT")
    #expect(headers.retryAfter == 120)
    #expect(read("Retry-After: Sun, 06 Nov 1994 08:51:37 GMT").retryAfter == nil)
  }

  @Test(
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
      ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199), ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
      ("Sunday, 06-Nov-94 08:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49:37 UTC", nil),
      ("Sun, 06 Foo 1994 08:49:37 GMT", nil), ("Sun, 32 Nov 1994 08:49:37 GMT", nil),
      ("Sun, 06 Nov 1994 24:49:37 GMT", nil), ("Sun, 06 Nov +994 08:49:37 GMT", nil), ("", nil),
    ] as [(String, Int64?)])
  func `a date of the preferred form becomes seconds since 1970`(text: String, seconds: Int64?) {
    let octets = Array(text.utf8)
    let read = httpDate(octets.span)
    #expect(read == seconds)
    #expect(self.read("Date: \(text)").date == seconds)
  }

  @Test func `the fields of one response do not stay for the next`() {
    var headers = read("HTTP/2 200 ", "content-type: a/b", "age: 1", "date: Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(headers.version == 2)
    headers.reset()
    #expect(headers.contentType.isEmpty)
    #expect(headers.age == nil)
    #expect(headers.date == nil)
    let line = Array("content-type: a/b\r\n".utf8)
    _ = headers.take(line.span)
    #expect(headers.contentType == "a/b")
  }

  @Test func `lines of any octets and lengths are survived`() {
    var state: UInt64 = 42
    for _ in 0..<5000 {
      var headers = ResponseHeaders()
      state = state &* 6_364_136_223_846_793_005 &+ 1
      let start = ["age:", "date:", "cache-control:", "retry-after:", "content-type:", "http/", ""][
        Int(state >> 33) % 7]
      var line = Array(start.utf8)
      for _ in 0..<(Int(state >> 40) % 40) {
        state = state &* 6_364_136_223_846_793_005 &+ 1
        line.append(UInt8(truncatingIfNeeded: state >> 50))
      }
      let isTaken = headers.take(line.span)
      #expect(isTaken)
    }
  }
}
