// ResponseWriter.swift -- composes responses of HTTP/1.1 (RFC 9112 section 4) for all connections of a server.

import Glibc
import HTTPMessage

/// Composes a response in a buffer that it keeps.
struct ResponseWriter {
  /// How the end of an answer's body is recognised.
  enum Framing: Equatable {
    case length(Int)
    /// By chunks (RFC 9112 section 7.1).
    case chunks
    /// By the end of the connection, for HTTP/1.0.
    case connection
  }

  /// What the connection does after the answer, as far as the client has to be told.
  enum Persistence {
    /// What the client expects without a field.
    case usual
    case closes
    /// The client speaks HTTP/1.0 and asked for it.
    case keeps
  }

  /// What is composed.
  private(set) var octets: [UInt8] = []
  private var date = HTTPDateText()

  /// A larger buffer is freed after the response.
  private static let keptCapacity = 262_144

  /// Begins a response: all up to the body. Without a Content-Type in `fields` it is text. A field that contains a line break is
  /// left out, since the client would see another field.
  mutating func begin(status: Int, _ fields: [HTTPField], _ framing: Framing, _ persistence: Persistence) {
    clear()
    append("HTTP/1.1 ")
    append(status)
    append(" ")
    append(ResponseWriter.reason(of: status))
    append("\r\n")
    var (hasDate, hasType) = (false, false)
    for field in fields where ResponseWriter.isOneLine(field.name) && ResponseWriter.isOneLine(field.value) {
      if field.isNamed("Date") { hasDate = true }
      if field.isNamed("Content-Type") { hasType = true }
      append(field.name)
      append(": ")
      append(field.value)
      append("\r\n")
    }
    if !hasDate {
      append("Date: ")
      date.withValue { octets.append(contentsOf: $0) }
      append("\r\n")
    }
    // These have neither content nor anything about it (RFC 9110 sections 15.3.5 and 15.4.5).
    if status != 204, status != 304 {
      switch framing {
      case .length(let length):
        append("Content-Length: ")
        append(length)
        append("\r\n")
      case .chunks: append("Transfer-Encoding: chunked\r\n")
      case .connection: break
      }
      if !hasType { append("Content-Type: text/plain; charset=utf-8\r\n") }
    }
    switch persistence {
    case .usual: break
    case .closes: append("Connection: close\r\n")
    case .keeps: append("Connection: keep-alive\r\n")
    }
    append("\r\n")
  }

  mutating func append(body: [UInt8]) { octets.append(contentsOf: body) }

  /// Composes one chunk. An empty one would end the body.
  mutating func chunk(_ content: [UInt8]) {
    clear()
    append(String(content.count, radix: 16))
    append("\r\n")
    octets.append(contentsOf: content)
    append("\r\n")
  }

  /// Composes the end of a body in chunks.
  mutating func lastChunk() {
    clear()
    append("0\r\n\r\n")
  }

  private mutating func clear() { octets.removeAll(keepingCapacity: octets.capacity <= ResponseWriter.keptCapacity) }

  private mutating func append(_ text: String) { octets.append(contentsOf: text.utf8) }

  private mutating func append(_ text: StaticString) {
    octets.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private mutating func append(_ number: Int) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: DecimalDigits.longest) { digits in
      let end = DecimalDigits.write(number, to: digits)
      octets.append(contentsOf: UnsafeBufferPointer(rebasing: digits[..<end]))
    }
  }

  private static func isOneLine(_ text: String) -> Bool {
    !text.utf8.contains { $0 == Octet.lineFeed || $0 == Octet.carriageReturn }
  }

  /// The reason phrase; empty for a status that has none here (RFC 9112 section 4).
  private static func reason(of status: Int) -> StaticString {
    switch status {
    case 200: "OK"
    case 202: "Accepted"
    case 204: "No Content"
    case 301: "Moved Permanently"
    case 302: "Found"
    case 304: "Not Modified"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 408: "Request Timeout"
    case 409: "Conflict"
    case 411: "Length Required"
    case 413: "Content Too Large"
    case 414: "URI Too Long"
    case 415: "Unsupported Media Type"
    case 421: "Misdirected Request"
    case 429: "Too Many Requests"
    case 431: "Request Header Fields Too Large"
    case 500: "Internal Server Error"
    case 501: "Not Implemented"
    case 502: "Bad Gateway"
    case 503: "Service Unavailable"
    case 504: "Gateway Timeout"
    case 505: "HTTP Version Not Supported"
    default: ""
    }
  }
}

/// The value of Date (RFC 9110 section 6.6.1), composed once a second.
struct HTTPDateText {
  private var octets: [UInt8] = []
  private var second: time_t = 0

  /// Calls `body` with the octets for the present second.
  mutating func withValue<Value>(_ body: (UnsafeBufferPointer<UInt8>) -> Value) -> Value {
    var now = time(nil)
    if now != second || octets.isEmpty {
      var parts = tm()
      gmtime_r(&now, &parts)
      var text = [CChar](repeating: 0, count: 48)
      let length = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
      octets = text[..<length].map { UInt8(bitPattern: $0) }
      second = now
    }
    return octets.withUnsafeBufferPointer(body)
  }
}
