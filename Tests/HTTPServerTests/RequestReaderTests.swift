// RequestReaderTests.swift -- which octets are requests, and which are refused with what status.

import HTTPMessage
import Testing

@testable import HTTPServer

extension RequestReader {
  /// Also where a macro would keep the span.
  fileprivate mutating func read(_ octets: [UInt8]) throws(RequestRefusal) -> ParsedRequest? { try next(octets.span) }
}

@Suite struct `The reader of requests` {
  private func reader(_ headerOctets: Int = 8192, fields: Int = 32, body: Int = 100) -> RequestReader {
    RequestReader(headerOctets: headerOctets, fields: fields, bodyOctets: body)
  }

  /// The outcome for a text that comes at once: `GET /path`, `more`, or the status of the refusal.
  private func outcome(_ text: String, _ reader: RequestReader? = nil) -> String {
    var reader = reader ?? self.reader()
    do throws(RequestRefusal) {
      guard let request = try reader.read(Array(text.utf8)) else { return "more" }
      return "\(request.head.method.rawValue) \(request.head.target)"
    } catch { return "\(error.status)" }
  }

  @Test(arguments: [
    ("GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a?b"), ("HEAD / HTTP/1.1\r\nhost:x\r\n\r\n", "HEAD /"),
    ("PUT /a HTTP/1.1\r\nHost: \r\n\r\n", "PUT /a"), ("DELETE /a HTTP/1.0\r\n\r\n", "DELETE /a"),
    // Empty lines before a request (RFC 9112 section 2.2).
    ("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /"),
    ("GET http://x/a HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://x/a"),
    ("GET /bücher HTTP/1.1\r\nHost: x\r\n\r\n", "GET /bücher"), ("GET / HTTP/1.9\r\nHost: x\r\n\r\n", "GET /"),
    ("GET / HTTP/1.1\r\nHost: x\r\nX:\t a b \t\r\nY:\r\n\r\n", "GET /"),
    ("GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "GET /"),
    ("POST / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /"),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab", "more"),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 003\r\n\r\nabc", "POST /"), ("", "more"), ("GET / HTT", "more"),
    ("GET / HTTP/1.1\r\nHost: x\r\n", "more"), ("GET / HTTP/1.1\r\nHost: x\r\n\r", "more"), ("\r\n", "more"),
  ]) func `a request is read`(text: String, expected: String) { #expect(outcome(text) == expected) }

  @Test(arguments: [
    ("GET /\r\n\r\n", "400"), ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
    ("GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
    ("GET / HTTP/1.1 \r\nHost: x\r\n\r\n", "400"), ("GET / http/1.1\r\nHost: x\r\n\r\n", "400"),
    (" GET / HTTP/1.1\r\nHost: x\r\n\r\n", "400"), ("GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
    ("GET a HTTP/1.1\r\nHost: x\r\n\r\n", "400"), ("GET * HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
    ("GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "400"), ("GET /\u{1} HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
    ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", "505"), ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
    ("GET / HTTP/1.10\r\nHost: x\r\n\r\n", "400"), ("BREW / HTTP/1.1\r\nHost: x\r\n\r\n", "501"),
    ("get / HTTP/1.1\r\nHost: x\r\n\r\n", "501"), ("TRACE * HTTP/1.1\r\nHost: x\r\n\r\n", "501"),
    ("CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", "501"), ("G@T / HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
    // Ends of lines on which two readers may disagree.
    ("GET / HTTP/1.1\nHost: x\n\n", "400"), ("GET / HTTP/1.1\r\nHost: x\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n", "400"), ("\n", "400"),
    ("\rGET / HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: x\r\r\n\r\n", "400"),
    // Fields.
    ("GET / HTTP/1.1\r\n\r\n", "400"), ("GET / HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n", "400"),
    ("GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n", "400"), ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost\t: x\r\n\r\n", "400"), ("GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\n Host: x\r\n\r\n", "400"), ("GET / HTTP/1.1\r\nHost: x\r\n\ta: b\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", "400"), ("GET / HTTP/1.1\r\nHost: x\r\nX: a\u{7F}\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: x\r\nX\0: a\r\n\r\n", "400"), ("GET / HTTP/1.1\r\nHost: x\r\n: a\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\nHost: x\r\nX\r\n\r\n", "400"), ("GET / HTTP/1.1\r\nHost: x\r\nÄ: a\r\n\r\n", "400"),
    // Lengths.
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "400"),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nabc", "400"),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc", "400"),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\nabc", "400"),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x3\r\n\r\nabc", "400"),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n", "400"),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", "413"),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", "413"),
    ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "411"),
    ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n", "411"),
    ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc", "400"),
    ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
  ]) func `what is no request, or may be two, is refused`(text: String, status: String) {
    #expect(outcome(text) == status)
  }

  @Test func `a head has its limit in octets and in fields`() {
    let head = "GET / HTTP/1.1\r\nHost: x\r\nX: "
    for (count, expected) in [(30, "GET /"), (31, "431"), (5000, "431")] {
      #expect(outcome("\(head)\(String(repeating: "x", count: count))\r\n\r\n", reader(62)) == expected)
    }
    // The limit holds before the end is there.
    #expect(outcome(String(repeating: "x", count: 62), reader(62)) == "431")
    #expect(outcome(String(repeating: "\r\n", count: 31), reader(62)) == "431")
    for (count, expected) in [(31, "GET /"), (32, "431")] {
      let fields = String(repeating: "X: y\r\n", count: count)
      #expect(outcome("GET / HTTP/1.1\r\nHost: x\r\n\(fields)\r\n") == expected)
    }
  }

  @Test func `the parts of a request are those that were sent`() throws {
    let text = "POST /p HTTP/1.1\r\nHost:  dns.test:80 \r\nX-A: b, c\r\nX-A:\r\nContent-Length: 3\r\n\r\nabcGET"
    let octets = Array(text.utf8)
    var reader = reader()
    let request = try #require(try reader.read(octets))
    #expect(request.head.host == "dns.test:80")
    #expect(
      request.head.fields == [
        HTTPField("Host", "dns.test:80"), HTTPField("X-A", "b, c"), HTTPField("X-A", ""),
        HTTPField("Content-Length", "3"),
      ])
    #expect(String(decoding: octets[request.body], as: UTF8.self) == "abc")
    #expect(String(decoding: octets[request.end...], as: UTF8.self) == "GET")
  }

  @Test(arguments: [
    ("HTTP/1.1", nil, true), ("HTTP/1.0", nil, false), ("HTTP/1.0", "Keep-Alive", true), ("HTTP/1.1", "close", false),
    ("HTTP/1.1", "keep-alive, CLOSE", false), ("HTTP/1.0", "close, keep-alive", false), ("HTTP/1.1", "x , y", true),
    ("HTTP/1.0", "x,\tkeep-alive ,", true),
  ]) func `a connection is kept as the client wants it`(version: String, field: String?, isKept: Bool) throws {
    let line = field.map { "Connection: \($0)\r\n" } ?? ""
    var reader = reader()
    let request = try reader.read(Array("GET / \(version)\r\nHost: x\r\n\(line)\r\n".utf8))
    #expect(try #require(request).head.isKept == isKept)
  }

  @Test func `a request is the same in any split`() throws {
    let text = "\r\nPOST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    let octets = Array(text.utf8)
    for first in 0..<octets.count {
      for second in first..<octets.count {
        var reader = reader()
        #expect(try reader.read(Array(octets[..<first])) == nil)
        #expect(try reader.read(Array(octets[..<second])) == nil)
        let request = try #require(try reader.read(octets))
        #expect(request.end == octets.count && request.head.target == "/p" && request.body.count == 3)
      }
    }
  }
}
