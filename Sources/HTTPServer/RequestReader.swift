// RequestReader.swift -- parses HTTP/1.1 requests (RFC 9112). Pure; the input is untrusted.
//
// Where a program between client and server could see other boundaries of requests than this reader, the request is refused
// and the connection ends (request smuggling, RFC 9112 section 11.2): a line that ends without CR, a folded field, a space
// before a colon, NUL, two lengths, two Host fields or none. A body has one Content-Length; chunked ones are refused.
//
// The head is searched for its end once, however it is split, and parsed when it is complete. It is bounded in octets and
// fields, the body in octets: what has to be kept of a request that is not complete is never more than both.

import HTTPMessage

/// Why a request is not served. The connection ends after the answer, since its boundaries are in doubt.
package struct RequestRefusal: Error, Equatable {
  /// The status of the answer.
  package let status: Int
  /// One line for the client.
  package let reason: String

  init(_ status: Int, _ reason: String) {
    self.status = status
    self.reason = reason
  }

  static func malformed(_ reason: String) -> RequestRefusal { RequestRefusal(400, reason) }
}

/// A complete request, and where it stands in the octets.
package struct ParsedRequest: Equatable {
  package let head: RequestHead
  /// The octets of the body.
  package let body: Range<Int>
  /// The first octet after the request.
  package var end: Int { body.upperBound }
}

/// The request line and the fields of a request.
package struct RequestHead: Equatable {
  package let method: HTTPMethod
  /// The request target as sent.
  package let target: String
  /// In the order in which they were sent.
  package fileprivate(set) var fields: [HTTPField] = []
  /// The value of the Host field; nil without one, which only HTTP/1.0 permits.
  package fileprivate(set) var host: String?
  /// Whether the client speaks HTTP/1.0 and so knows no chunks.
  package let isOld: Bool
  /// Whether the client wants the connection to continue after the answer (RFC 9112 section 9.3).
  package fileprivate(set) var isKept: Bool
  /// The octets of the body.
  package fileprivate(set) var length = 0
}

/// Reads the requests of one connection. After a refusal it must not be used any more.
package struct RequestReader {
  /// The most octets of the head, with empty lines before it.
  private let headerOctets: Int
  /// The most fields.
  private let fieldLimit: Int
  /// The most octets of a body.
  private let bodyOctets: Int
  /// Whether a method that has no name here is passed on as `other`.
  private let takesAnyMethod: Bool
  /// Where the search for the head's end continues.
  private var scanned = 0
  /// Where the line that is searched for its end begins.
  private var lineStart = 0
  /// Where the head begins, behind empty lines.
  private var start = 0
  /// The head, while the body is incomplete, and where it ends.
  private var pending: (head: RequestHead, end: Int)?

  package init(headerOctets: Int, fields: Int, bodyOctets: Int, takesAnyMethod: Bool = false) {
    self.headerOctets = headerOctets
    fieldLimit = fields
    self.bodyOctets = bodyOctets
    self.takesAnyMethod = takesAnyMethod
  }

  /// Whether the octets of the last call hold a part of a request.
  package private(set) var isInRequest = false

  /// Returns the request with which the octets begin; nil if it is incomplete.
  ///
  /// - Parameter octets: all that has arrived behind the previous request; after nil, the same octets and more.
  /// - Throws: `RequestRefusal` if the octets are no request or exceed a limit.
  /// - Complexity: O(n) in the octets that are new, and once in those of the head.
  package mutating func next(_ octets: Span<UInt8>) throws(RequestRefusal) -> ParsedRequest? {
    isInRequest = octets.count > 0
    if pending == nil {
      guard let end = try endOfHead(octets) else { return nil }
      let head = try parse(octets.extracting(start..<end))
      guard head.length <= bodyOctets else { throw RequestRefusal(413, "the body exceeds \(bodyOctets) octets") }
      pending = (head, end)
    }
    guard let (head, end) = pending, octets.count - end >= head.length else { return nil }
    pending = nil
    (scanned, lineStart, start) = (0, 0, 0)
    isInRequest = false
    return ParsedRequest(head: head, body: end..<(end + head.length))
  }

  /// Searches for the empty line behind the fields. Skips those before the request (RFC 9112 section 2.2).
  private mutating func endOfHead(_ octets: Span<UInt8>) throws(RequestRefusal) -> Int? {
    let most = octets.count < headerOctets ? octets.count : headerOctets
    while scanned < most {
      let octet = octets[scanned]
      scanned += 1
      guard octet == Octet.lineFeed else { continue }
      let length = scanned - lineStart
      guard length > 1, octets[scanned - 2] == Octet.carriageReturn else {
        throw .malformed("a line ends without carriage return")
      }
      let isEmpty = length == 2
      if isEmpty, lineStart > start { return scanned }
      lineStart = scanned
      if isEmpty { start = scanned }
    }
    guard octets.count < headerOctets else {
      throw RequestRefusal(431, "request line and fields exceed \(headerOctets) octets")
    }
    return nil
  }

  /// Parses a head with its empty line.
  private func parse(_ octets: Span<UInt8>) throws(RequestRefusal) -> RequestHead {
    var position = 0
    var head = try requestLine(RequestReader.line(octets, from: &position))
    // For most clients; a larger array would be allocated in steps.
    head.fields.reserveCapacity(8)
    var framing = Framing()
    while true {
      let line = RequestReader.line(octets, from: &position)
      guard line.count > 0 else { break }
      guard head.fields.count < fieldLimit else { throw RequestRefusal(431, "more than \(fieldLimit) fields") }
      try field(line, to: &head, &framing)
    }
    guard head.host != nil || head.isOld else { throw .malformed("no Host field") }
    try framing.judge(head.isOld)
    head.length = framing.length ?? 0
    return head
  }

  /// Returns a line without its end, and moves behind it. There is one: the head ends with an empty line.
  @_lifetime(copy octets)
  private static func line(_ octets: Span<UInt8>, from position: inout Int) -> Span<UInt8> {
    let begin = position
    while octets[position] != Octet.lineFeed { position += 1 }
    position += 1
    return octets.extracting(begin..<(position - 2))
  }

  /// `GET /path HTTP/1.1` (RFC 9112 section 3).
  private func requestLine(_ line: Span<UInt8>) throws(RequestRefusal) -> RequestHead {
    guard let first = line.index(of: Octet.space, from: 0), let second = line.index(of: Octet.space, from: first + 1)
    else { throw .malformed("no request line of HTTP/1.1") }
    let minor = try RequestReader.minorVersion(line.extracting((second + 1)..<line.count))
    let method = try method(line.extracting(0..<first))
    let target = line.extracting((first + 1)..<second)
    // A client may send a name as it is, beyond ASCII.
    guard target.allSatisfy({ $0 > Octet.space && $0 != Octet.delete }) else {
      throw .malformed("the target has octets that must be encoded")
    }
    let isAbsolute = target.hasPrefixIgnoringCase("http://") || target.hasPrefixIgnoringCase("https://")
    guard isAbsolute || target.count > 0 && target[0] == UInt8(ascii: "/") else {
      throw .malformed("the target is neither a path nor a URL of http")
    }
    return RequestHead(method: method, target: target.text, isOld: minor == 0, isKept: minor > 0)
  }

  /// Of an unknown version 1.x, the client may be taken at its word that it understands 1.1 (RFC 9110 section 2.5).
  private static func minorVersion(_ text: Span<UInt8>) throws(RequestRefusal) -> UInt8 {
    guard text.count == 8, text.hasPrefixIgnoringCase("HTTP/"), text[0] == UInt8(ascii: "H"), Octet.isDigit(text[5]),
      text[6] == UInt8(ascii: "."), Octet.isDigit(text[7])
    else { throw .malformed("no request line of HTTP/1.1") }
    guard text[5] == UInt8(ascii: "1") else { throw RequestRefusal(505, "only HTTP/1.1 is spoken here") }
    return text[7] - UInt8(ascii: "0")
  }

  private func method(_ name: Span<UInt8>) throws(RequestRefusal) -> HTTPMethod {
    if name.equals("GET") { return .get }
    if name.equals("POST") { return .post }
    if name.equals("HEAD") { return .head }
    if name.equals("PUT") { return .put }
    if name.equals("DELETE") { return .delete }
    guard name.count > 0, name.allSatisfy(Octet.isToken) else { throw .malformed("the method is not a word") }
    guard takesAnyMethod else { throw RequestRefusal(501, "the method is not known") }
    return .other
  }

  /// `Name: value` (RFC 9112 section 5).
  private func field(_ line: Span<UInt8>, to head: inout RequestHead, _ framing: inout Framing) throws(RequestRefusal) {
    guard let colon = line.index(of: UInt8(ascii: ":"), from: 0), colon > 0 else {
      throw .malformed("a field has no name")
    }
    let name = line.extracting(0..<colon)
    // Neither a folded line nor a space before the colon passes.
    guard name.allSatisfy(Octet.isToken) else { throw .malformed("a field's name is not a word") }
    var (begin, end) = (colon + 1, line.count)
    while begin < end, Octet.isBlank(line[begin]) { begin += 1 }
    while end > begin, Octet.isBlank(line[end - 1]) { end -= 1 }
    let value = line.extracting(begin..<end)
    guard value.allSatisfy(Octet.isInValue) else { throw .malformed("a field has control characters") }
    let field = HTTPField(name.text, value.text)
    switch name.count {
    case 4 where name.equalsIgnoringCase("Host"):
      guard head.host == nil else { throw .malformed("two Host fields") }
      head.host = field.value
    case 10 where name.equalsIgnoringCase("Connection"):
      value.forEachElement { element in
        if element.equalsIgnoringCase("close") {
          (head.isKept, framing.closes) = (false, true)
        } else if element.equalsIgnoringCase("keep-alive"), !framing.closes {
          head.isKept = true
        }
      }
    case 14 where name.equalsIgnoringCase("Content-Length"): try framing.take(length: value)
    case 17 where name.equalsIgnoringCase("Transfer-Encoding"): framing.hasCoding = true
    default: break
    }
    head.fields.append(field)
  }
}

/// What the fields say about the end of a request.
private struct Framing {
  var length: Int?
  var hasCoding = false
  /// Whether the client closes the connection, whatever else it says.
  var closes = false

  /// Digits that any body needs.
  private static let mostDigits = 18

  /// Content-Length, which is one number (RFC 9112 section 6.3). RFC 9110 permits equal ones; no client sends them.
  mutating func take(length text: Span<UInt8>) throws(RequestRefusal) {
    guard length == nil else { throw .malformed("two lengths") }
    guard text.count > 0, text.allSatisfy(Octet.isDigit) else { throw .malformed("the length is not a number") }
    guard text.count <= Framing.mostDigits else { throw RequestRefusal(413, "the body is too large") }
    var number = 0
    for index in 0..<text.count { number = number * 10 + Int(text[index] - UInt8(ascii: "0")) }
    length = number
  }

  func judge(_ isOld: Bool) throws(RequestRefusal) {
    guard hasCoding else { return }
    // HTTP/1.0 has no codings, and with a length as well two programs may disagree (RFC 9112 section 6.1).
    guard length == nil, !isOld else { throw .malformed("a coding beside a length, or in HTTP/1.0") }
    throw RequestRefusal(411, "a body needs a Content-Length")
  }
}
