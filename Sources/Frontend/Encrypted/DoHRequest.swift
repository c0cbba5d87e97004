// DoHRequest.swift -- what an HTTP request asks: a DNS message (RFC 8484), a JSON question, or nothing.
//
// Pure, and without allocation: the octets of the request stay where they are, and those of `dns=` become the message in
// their own memory. The checks have an order, so that a request with several mistakes always gets the same status, and a
// client without a token learns nothing but 404: host (421), path and token (404), method (405); of a GET the parameter
// (400, 414, 400), of a POST type (415), length (411, 413); then the message (400). The address of the client and its
// limits are the caller's (400 and 403 before all of this, 429 after it).

import DNSWire

/// The parts of an HTTP request that decide what it asks. The caller owns the octets.
package struct DoHRequestHead {
  /// The method as sent.
  package var method: UnsafeBufferPointer<UInt8>
  /// Path and query string as sent: the request target of HTTP/1.1 or `:path`. Overwritten.
  package var target: UnsafeMutableBufferPointer<UInt8>
  /// `Host` or `:authority`; empty without.
  package var host: UnsafeBufferPointer<UInt8>
  /// `Content-Type`; empty without.
  package var contentType: UnsafeBufferPointer<UInt8>
  /// The octets of the body; nil if they are not known before its end, because it is chunked.
  package var contentLength: Int?

  package init(
    method: UnsafeBufferPointer<UInt8>, target: UnsafeMutableBufferPointer<UInt8>, host: UnsafeBufferPointer<UInt8>,
    contentType: UnsafeBufferPointer<UInt8>, contentLength: Int?
  ) {
    self.method = method
    self.target = target
    self.host = host
    self.contentType = contentType
    self.contentLength = contentLength
  }
}

/// Media types of requests and answers.
package enum DoHMediaType {
  /// A DNS message (RFC 8484 section 6).
  package static var message: StaticString { @_noAllocation get { "application/dns-message" } }
  /// An answer of the JSON interface.
  package static var json: StaticString { @_noAllocation get { "application/dns-json" } }
}

/// Bounds of requests.
package enum DoHLimit {
  /// The most characters of `dns=`: 2,048 octets, and no query is longer in practice.
  package static var characters: Int { @_noAllocation get { 2731 } }
  /// The most octets of a body: those of the largest DNS message.
  package static var octets: Int { @_noAllocation get { 65_535 } }
}

/// What a request asks.
package enum DoHRequest {
  /// The DNS message of a GET, within the memory of the target.
  case message(UnsafeBufferPointer<UInt8>)
  /// The body is the DNS message: see `check`.
  case body
  /// A question of the JSON interface: the query string, for `JSONQuestion`.
  case json(UnsafeBufferPointer<UInt8>)

  /// Checks the head of a request, in the order above. Overwrites `dns=` in it.
  ///
  /// - Parameter isKnown: whether the token behind the path is a valid one; it is empty where there is none. Without
  ///   tokens: `{ $0.isEmpty }`.
  /// - Throws: `DoHRefusal`
  package static func read(
    _ head: DoHRequestHead, to site: DoHSite, isKnown: (UnsafeBufferPointer<UInt8>) -> Bool
  ) throws(DoHRefusal) -> DoHRequest {
    guard site.serves(head.host) else { throw .misdirected }
    let target = UnsafeBufferPointer(start: head.target.baseAddress, count: head.target.count)
    let place = site.place(of: target)
    guard place.exists, isKnown(place.token) else { throw .notFound }
    let isGet = isWord(head.method, "GET")
    if place.isJSON {
      guard isGet else { throw .wrongMethodOfJSON }
      return .json(target.part(place.queryStart, target.count))
    }
    if isGet { return .message(try message(in: head.target, from: place.queryStart)) }
    guard isWord(head.method, "POST") else { throw .wrongMethod }
    guard isMessage(head.contentType) else { throw .wrongType }
    guard let length = head.contentLength else { throw .noLength }
    guard length <= DoHLimit.octets else { throw .tooLarge }
    return .body
  }

  /// Checks octets for the form of a query: a header without QR. The query path answers every other mistake.
  ///
  /// - Throws: `DoHRefusal.noMessage`
  @_noAllocation
  package static func check(_ message: UnsafeBufferPointer<UInt8>) throws(DoHRefusal) {
    guard message.count >= QueryReader.headerLength, message[2] & 0x80 == 0 else { throw .noMessage }
  }

  /// Decodes the first `dns=` of a query string, the end of the target.
  @_noAllocation
  private static func message(
    in target: UnsafeMutableBufferPointer<UInt8>, from queryStart: Int
  ) throws(DoHRefusal) -> UnsafeBufferPointer<UInt8> {
    let octets = UnsafeBufferPointer(start: target.baseAddress, count: target.count)
    let name = ("dns=" as StaticString).octets
    var start = queryStart
    while start < octets.count {
      let end = octets.offset(of: UInt8(ascii: "&"), from: start)
      if let base = target.baseAddress, octets.part(start, end).begins(with: name) {
        start += name.count
        guard end - start <= DoHLimit.characters else { throw .targetTooLong }
        let count = Base64URL.decode(inPlace: UnsafeMutableBufferPointer(start: base + start, count: end - start))
        guard count >= 0 else { throw .noBase64URL }
        let message = UnsafeBufferPointer(start: UnsafePointer(base + start), count: count)
        try check(message)
        return message
      }
      start = end + 1
    }
    throw .noParameter
  }

  @_noAllocation
  private static func isWord(_ octets: UnsafeBufferPointer<UInt8>, _ word: StaticString) -> Bool {
    octets.count == word.octets.count && octets.begins(with: word.octets)
  }

  /// Whether a media type is that of a DNS message, in any case and with any parameters (RFC 9110 section 8.3.1).
  @_noAllocation
  private static func isMessage(_ contentType: UnsafeBufferPointer<UInt8>) -> Bool {
    var (start, end) = (0, contentType.offset(of: UInt8(ascii: ";")))
    while start < end, isBlank(contentType[start]) { start += 1 }
    while end > start, isBlank(contentType[end - 1]) { end -= 1 }
    return contentType.part(start, end).isEqual(inAnyCase: DoHMediaType.message.octets)
  }

  @_noAllocation
  private static func isBlank(_ octet: UInt8) -> Bool { octet == UInt8(ascii: " ") || octet == UInt8(ascii: "\t") }
}
