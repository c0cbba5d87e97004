// HTTPRequestProperty.swift -- a client's requests are the same in any split, within their limits, and end where they say.

import HTTPMessage
import HTTPServer

/// The requests of an HTTP connection. The input is an octet that says how the stream is split and what the limits are, and
/// the stream.
public final class HTTPRequestProperty: Property {
  /// The fuzz target.
  public static let name = "HTTPRequest"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    guard let mode = input.first else { return }
    let stream = Array(input.dropFirst())
    let limits =
      mode & 0x80 != 0 ? Limits(header: 64, fields: 3, body: 8) : Limits(header: 8192, fields: 32, body: 65_536)
    let whole = read(stream, piece: stream.count, limits)
    try require(whole == read(stream, piece: Int(mode & 0x7F), limits), "other requests in another split")
    var begin = 0
    for request in whole.requests {
      try checkRequest(request, Array(stream[begin..<request.end]), limits)
      begin = request.end
    }
  }

  private struct Limits {
    var header: Int
    var fields: Int
    var body: Int
  }

  /// A request with its place in the stream.
  private struct Found: Equatable {
    var head: RequestHead
    var body: [UInt8]
    var end: Int
  }

  private struct Outcome: Equatable {
    var requests: [Found] = []
    var refusal: RequestRefusal?
  }

  /// Reads as a connection does: what is left of a piece waits for the next one.
  private func read(_ stream: [UInt8], piece: Int, _ limits: Limits) -> Outcome {
    var reader = RequestReader(headerOctets: limits.header, fields: limits.fields, bodyOctets: limits.body)
    var outcome = Outcome()
    var kept: [UInt8] = []
    var (begin, position) = (0, 0)
    while position < stream.count {
      // A hundred pieces of a few octets meet every place of a head; a long stream need not come in thousands.
      let length = position < 100 * max(1, piece) ? max(1, piece) : stream.count
      kept += stream[position...].prefix(length)
      position = min(stream.count, position + length)
      do throws(RequestRefusal) {
        while let request = try reader.next(kept.span) {
          outcome.requests.append(Found(head: request.head, body: Array(kept[request.body]), end: begin + request.end))
          begin += request.end
          kept.removeFirst(request.end)
        }
      } catch {
        outcome.refusal = error
        return outcome
      }
    }
    return outcome
  }

  private func checkRequest(_ request: Found, _ octets: [UInt8], _ limits: Limits) throws(Violation) {
    let head = request.head
    try require(head.fields.count <= limits.fields, "\(head.fields.count) fields")
    try require(request.body.count <= limits.body && request.body.count == head.length, "\(request.body.count) octets")
    let header = octets.dropLast(request.body.count)
    try require(header.count <= limits.header, "a head of \(header.count) octets")
    try require(header.suffix(4).elementsEqual("\r\n\r\n".utf8), "a head without its end")
    try require(!header.contains(0), "NUL")
    for (index, octet) in header.enumerated() where octet == 0x0A || octet == 0x0D {
      let other = octet == 0x0A ? index - 1 : index + 1
      try require(
        header.indices.contains(other) && header[other] == (octet == 0x0A ? 0x0D : 0x0A), "half an end of line")
    }
    // Written from what was read, it is read again as the same.
    var text = "\(head.method.rawValue) \(head.target) HTTP/1.\(head.isOld ? 0 : 1)\r\n"
    for field in head.fields {
      try require(isOneLine(field.name) && !field.name.contains(" "), "a name that is not a word")
      text += "\(field.name): \(field.value)\r\n"
    }
    let again = read(
      Array("\(text)\r\n".utf8) + request.body, piece: 1 << 20, Limits(header: 1 << 20, fields: 32, body: 65_536))
    try require(again.requests.count == 1 && again.refusal == nil, "not one request when written again")
    try require(again.requests[0].head == head && again.requests[0].body == request.body, "another one when read again")
    let names = head.fields.map { $0.name.lowercased() }
    try require(names.count { $0 == "host" } == 1 || head.isOld && !names.contains("host"), "Host fields")
    try require(names.count { $0 == "content-length" } <= 1 && !names.contains("transfer-encoding"), "two ends")
  }
}
