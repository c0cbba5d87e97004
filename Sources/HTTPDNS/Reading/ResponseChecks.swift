// ResponseChecks.swift -- checks status, media type and size before a dialect reads a body.

import DNSWire
import HTTPMessage

extension HTTPResponse {
  /// Throws unless the status allows an answer.
  ///
  /// - Parameter success: the statuses that do.
  func requireStatus(in success: ClosedRange<Int>) throws(HTTPDNSFailure) {
    guard success.contains(status) else { throw .status(status, retryAfter: retryAfter) }
  }

  /// Throws for a body of another media type or of more than `limit` octets.
  func requireBody(_ accepted: MediaTypes, limit: Int) throws(HTTPDNSFailure) {
    guard accepted.contains(contentType) else { throw .unreadable(.mediaType) }
    guard body.count <= limit else { throw .unreadable(.tooLarge) }
  }
}

extension HTTPDNSFailure {
  /// The message for a response of another media type, with that type if it is a plain one.
  package static func wrongMediaType(of response: HTTPResponse) -> String {
    let essence = response.contentType?.prefix { $0 != ";" && $0 != " " } ?? ""
    let isPlain = essence.utf8.allSatisfy { 0x21...0x7E ~= $0 } && essence.utf8.count <= 64
    let found = essence.isEmpty ? "no media type" : isPlain ? "media type \(essence)" : "another media type"
    return "unreadable: \(found); is it the page of a portal?"
  }
}

/// The media types that a dialect accepts.
struct MediaTypes: Sendable {
  /// In lower case, without parameters.
  let names: [String]
  /// Whether a reply without a `Content-Type` field is accepted.
  let acceptsAbsent: Bool

  /// The media type of RFC 8484 section 6.
  static let message = MediaTypes(names: ["application/dns-message"], acceptsAbsent: false)

  /// The media types that the public JSON services send or used to send.
  static let json = MediaTypes(
    names: [
      "application/json", "application/dns-json", "application/x-javascript", "application/javascript",
      "text/javascript", "text/json",
    ], acceptsAbsent: false)

  /// For services that document no media type, such as Alibaba Cloud DNS: the plausible ones, but not HTML.
  static let undocumentedJSON = MediaTypes(
    names: json.names + ["text/plain", "application/octet-stream"], acceptsAbsent: true)

  /// Whether a `Content-Type` field has one of these types. Case and parameters do not matter (RFC 9110 section 8.3).
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

  /// Whether a text equals `name`, ignoring case.
  private func isEqual(_ text: Span<UInt8>, _ name: Span<UInt8>) -> Bool {
    guard text.count == name.count else { return false }
    for index in 0..<text.count where asciiLowercase(text[index]) != name[index] { return false }
    return true
  }

  private func isSpace(_ octet: UInt8) -> Bool { octet == UInt8(ascii: " ") || octet == UInt8(ascii: "\t") }
}
