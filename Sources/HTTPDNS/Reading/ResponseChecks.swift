// ResponseChecks.swift -- what is checked before a body is read: status, media type, size.

import DNSWire

extension TransferResponse {
  /// Refuses a status that carries no answer.
  ///
  /// - Parameter success: the statuses that do.
  func requireStatus(in success: ClosedRange<Int>) throws(HTTPDNSFailure) {
    guard !success.contains(status) else { return }
    switch status {
    case 401, 403: throw .authentication
    case 404: throw .badPath
    case 429: throw .quota(retryAfter: retryAfter)
    // The server gave up waiting, or got a request that was meant for another one: neither is a fault of ours.
    case 408, 421: throw .server(status: status)
    // 501 is about the method: no other server of the provider will know it either.
    case 400...499, 501: throw .badParameter
    default: throw .server(status: status)
    }
  }

  /// Refuses a body of another media type or of more than `limit` octets.
  func requireBody(_ accepted: MediaTypes, limit: Int) throws(HTTPDNSFailure) {
    guard accepted.contains(contentType) else { throw .unreadable(.mediaType) }
    guard body.count <= limit else { throw .unreadable(.tooLarge) }
  }
}

/// The media types that a dialect accepts.
struct MediaTypes: Sendable {
  /// In lower case, without parameters.
  let names: [String]
  /// Whether a reply may come without a `Content-Type` field.
  let acceptsAbsent: Bool

  /// RFC 8484 section 6.
  static let message = MediaTypes(names: ["application/dns-message"], acceptsAbsent: false)

  /// What the public JSON services send, or sent until a while ago.
  static let json = MediaTypes(
    names: [
      "application/json", "application/dns-json", "application/x-javascript", "application/javascript",
      "text/javascript", "text/json",
    ], acceptsAbsent: false)

  /// No document says what Alibaba Cloud DNS sends: anything but a page for people.
  static let undocumentedJSON = MediaTypes(
    names: json.names + ["text/plain", "application/octet-stream"], acceptsAbsent: true)

  /// Whether a `Content-Type` field is one of these; its case and its parameters do not matter (RFC 9110 section 8.3).
  func contains(_ contentType: String?) -> Bool {
    guard let contentType else { return acceptsAbsent }
    let field = contentType.utf8.span
    var end = 0
    while end < field.count, field[end] != UInt8(ascii: ";") { end += 1 }
    var start = 0
    while start < end, isSpace(field[start]) { start += 1 }
    while start < end, isSpace(field[end - 1]) { end -= 1 }
    let essence = field.extracting(start..<end)
    return names.contains { isEqual(essence, $0.utf8.span) }
  }

  /// Whether a text is `name` in any case.
  private func isEqual(_ text: Span<UInt8>, _ name: Span<UInt8>) -> Bool {
    guard text.count == name.count else { return false }
    for index in 0..<text.count where asciiLowercase(text[index]) != name[index] { return false }
    return true
  }

  private func isSpace(_ octet: UInt8) -> Bool { octet == UInt8(ascii: " ") || octet == UInt8(ascii: "\t") }
}
