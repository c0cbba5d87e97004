// HTTPExchange.swift -- requests over HTTP/1.1 and HTTP/2 as octets of the tests' own, and responses taken apart.

import CHTTP2
import Foundation
import TLSTestSupport
import Testing

/// The versions that the daemon speaks.
enum HTTPVersion: CaseIterable, CustomTestStringConvertible {
  case http1, http2

  /// Its name in ALPN.
  var name: String { self == .http1 ? "http/1.1" : "h2" }
  var testDescription: String { name }
}

/// A request.
struct HTTPAsk: Sendable {
  var method = "GET"
  var target: String
  var host: String? = "dns.test"
  var fields: [(name: String, value: String)] = []
  var body: [UInt8]?
  /// Whether Content-Length is sent with a body.
  var hasLength = true

  /// A DNS query by GET.
  static func get(_ query: TestQuery, at path: String = "/dns-query") -> HTTPAsk {
    HTTPAsk(target: "\(path)?dns=\(base64URL(query.octets))")
  }

  /// A DNS query by POST.
  static func post(_ query: TestQuery, at path: String = "/dns-query") -> HTTPAsk { post(query.octets, at: path) }

  /// Any octets by POST.
  static func post(
    _ body: [UInt8], at path: String = "/dns-query", type: String? = "application/dns-message"
  ) -> HTTPAsk {
    HTTPAsk(method: "POST", target: path, fields: type.map { [("content-type", $0)] } ?? [], body: body)
  }

  /// The same with another part.
  func with<Value>(_ part: WritableKeyPath<HTTPAsk, Value>, _ value: Value) -> HTTPAsk {
    var ask = self
    ask[keyPath: part] = value
    return ask
  }

  /// As HTTP/1.1 has it.
  var octets: [UInt8] {
    var lines = ["\(method) \(target) HTTP/1.1"]
    if let host { lines.append("Host: \(host)") }
    lines += fields.map { "\($0.name): \($0.value)" }
    if let body, hasLength { lines.append("Content-Length: \(body.count)") }
    return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + (body ?? [])
  }

  /// As HTTP/2 has it.
  fileprivate var list: [(String, String)] {
    var list = [(":method", method), (":scheme", "https"), (":path", target)]
    if let host { list.append((":authority", host)) }
    list += fields.map { ($0.name.lowercased(), $0.value) }
    if let body, hasLength { list.append(("content-length", "\(body.count)")) }
    return list
  }
}

/// Octets in base64url without padding (RFC 4648 section 5).
func base64URL(_ octets: [UInt8]) -> String {
  Data(octets).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
}

/// A response.
struct HTTPReply: Sendable {
  var status = 0
  /// By names in lower case.
  var fields: [String: String] = [:]
  var body: [UInt8] = []

  var text: String { String(decoding: body, as: UTF8.self) }

  /// The DNS message.
  func message(to query: TestQuery) throws -> Reply {
    guard status == 200, fields["content-type"] == "application/dns-message" else { throw Failure("\(self): \(text)") }
    return try Reply(body, to: query)
  }
}

extension ClientConnection {
  /// The next response of HTTP/1.1.
  ///
  /// - Parameter isHead: whether it has no body.
  func response(isHead: Bool = false) throws -> HTTPReply {
    let end = Array("\r\n\r\n".utf8)
    var place: Int?
    while place == nil {
      place = received.count < 4 ? nil : (0...(received.count - 4)).first { received[$0...].starts(with: end) }
      if place == nil, !receiveMore() { throw Failure("no response: \(String(decoding: received, as: UTF8.self))") }
    }
    let head = String(decoding: try take(place! + 4), as: UTF8.self)
    var reply = HTTPReply()
    for (index, line) in head.split(separator: "\r\n").enumerated() {
      if index == 0 {
        reply.status = Int(line.dropFirst(9).prefix(3)) ?? 0
      } else if let colon = line.firstIndex(of: ":") {
        reply.fields[line[..<colon].lowercased()] = line[colon...].dropFirst().trimmingCharacters(in: .whitespaces)
      }
    }
    guard !isHead else { return reply }
    guard let length = reply.fields["content-length"].flatMap({ Int($0) }) else { throw Failure("no length: \(head)") }
    reply.body = try take(length)
    return reply
  }

  /// Asks over HTTP/1.1.
  func fetch(_ ask: HTTPAsk) throws -> HTTPReply {
    send(ask.octets)
    return try response(isHead: ask.method == "HEAD")
  }
}

/// A client of HTTP/2 (RFC 9113), frame by frame.
final class HTTP2Client {
  enum Kind: UInt8 {
    case data, headers, priority, reset, settings, promise, ping, goAway, window, continuation
  }

  let connection: ClientConnection
  /// The last stream that the server handles, and why it goes; nil before its GOAWAY.
  private(set) var goAway: (lastStream: UInt32, code: UInt32)?
  /// The codes of the streams that the server has reset.
  private(set) var resets: [UInt32: UInt32] = [:]
  private var replies: [UInt32: HTTPReply] = [:]
  private var ended: Set<UInt32> = []
  private var lastStream: UInt32 = 0
  private var inflater: OpaquePointer?

  /// Sends the preface with settings of the protocol's defaults.
  init(_ connection: ClientConnection) {
    self.connection = connection
    nghttp2_hd_inflate_new(&inflater)
    connection.send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(.settings, 0, 0))
  }

  deinit { nghttp2_hd_inflate_del(inflater) }

  /// A frame.
  func frame(_ kind: Kind, _ flags: UInt8, _ stream: UInt32, _ content: [UInt8] = []) -> [UInt8] {
    let length = content.count
    return [UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), kind.rawValue, flags]
      + HTTP2Client.octets(stream) + content
  }

  /// Fields as literals that enter no table (RFC 7541 section 6.2.2).
  static func block(_ fields: [(String, String)]) -> [UInt8] {
    fields.flatMap { [0] + text($0.0) + text($0.1) }
  }

  private static func text(_ text: String) -> [UInt8] {
    var octets: [UInt8] = []
    var rest = text.utf8.count
    if rest < 127 {
      octets.append(UInt8(rest))
    } else {
      octets.append(127)
      rest -= 127
      while rest >= 128 {
        octets.append(UInt8(rest & 127) | 128)
        rest >>= 7
      }
      octets.append(UInt8(rest))
    }
    return octets + Array(text.utf8)
  }

  static func octets(_ number: UInt32) -> [UInt8] { (0..<4).reversed().map { UInt8(number >> ($0 * 8) & 0xFF) } }

  /// The next number of a client's stream.
  func nextStream() -> UInt32 {
    lastStream = lastStream == 0 ? 1 : lastStream + 2
    return lastStream
  }

  /// The frames of a request.
  ///
  /// - Parameter isWhole: whether the stream ends with them.
  func frames(_ ask: HTTPAsk, on stream: UInt32, isWhole: Bool = true) -> [UInt8] {
    let isLast = ask.body == nil && isWhole
    var octets = frame(.headers, isLast ? 5 : 4, stream, HTTP2Client.block(ask.list))
    guard let body = ask.body else { return octets }
    var rest = body[...]
    repeat {
      let part = rest.prefix(16_384)
      rest = rest.dropFirst(part.count)
      octets += frame(.data, rest.isEmpty && isWhole ? 1 : 0, stream, Array(part))
    } while !rest.isEmpty
    return octets
  }

  /// Sends a request.
  ///
  /// - Returns: its stream.
  @discardableResult
  func send(_ ask: HTTPAsk, isWhole: Bool = true) -> UInt32 {
    let stream = nextStream()
    connection.send(frames(ask, on: stream, isWhole: isWhole))
    return stream
  }

  /// Waits for the response on a stream.
  func response(_ stream: UInt32) throws -> HTTPReply {
    while !ended.contains(stream) {
      if let code = resets[stream] { throw Failure("stream \(stream) is reset: \(code)") }
      try handleFrame()
    }
    return replies[stream] ?? HTTPReply()
  }

  /// Asks, and waits for the response.
  func fetch(_ ask: HTTPAsk) throws -> HTTPReply { try response(send(ask)) }

  /// Handles what comes until the daemon ends the connection; nil if it does not in time.
  func waitForEnd(within duration: Duration = Socket.patience) -> ClientConnection.End? {
    let deadline = Deadline(duration)
    while !deadline.isOver {
      do { try handleFrame(within: deadline.remaining) } catch { break }
    }
    return connection.end
  }

  private func handleFrame(within duration: Duration = Socket.patience) throws {
    let head = try connection.take(9, within: duration)
    let content = try connection.take(Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]), within: duration)
    let stream = HTTP2Client.number(head[5..<9])
    switch Kind(rawValue: head[3]) {
    case .settings where head[4] & 1 == 0: connection.send(frame(.settings, 1, 0))
    case .ping where head[4] & 1 == 0: connection.send(frame(.ping, 1, 0, content))
    case .headers:
      for (name, value) in fields(content) {
        if name == ":status" {
          replies[stream, default: HTTPReply()].status = Int(value) ?? 0
        } else {
          replies[stream, default: HTTPReply()].fields[name] = value
        }
      }
    case .data:
      replies[stream, default: HTTPReply()].body += content
      guard !content.isEmpty else { break }
      // As much room again, of the connection and of the stream.
      for number in [0, stream] {
        connection.send(frame(.window, 0, number, HTTP2Client.octets(UInt32(content.count))))
      }
    case .reset: resets[stream] = HTTP2Client.number(content[...])
    case .goAway: goAway = (HTTP2Client.number(content[0..<4]), HTTP2Client.number(content[4..<8]))
    default: break
    }
    if head[3] <= 1, head[4] & 1 != 0 { ended.insert(stream) }
  }

  private static func number(_ octets: ArraySlice<UInt8>) -> UInt32 { octets.reduce(0) { $0 << 8 | UInt32($1) } }

  private func fields(_ block: [UInt8]) -> [(String, String)] {
    var fields: [(String, String)] = []
    block.withUnsafeBufferPointer { octets in
      var position = 0
      while true {
        var field = nghttp2_nv()
        var flags: Int32 = 0
        let count = nghttp2_hd_inflate_hd2(
          inflater, &field, &flags, octets.baseAddress! + position, octets.count - position, 1)
        guard count >= 0 else { return }
        position += count
        if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
          let name = UnsafeBufferPointer(start: field.name, count: field.namelen)
          let value = UnsafeBufferPointer(start: field.value, count: field.valuelen)
          fields.append((String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
        }
        guard flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) == 0 else { break }
      }
      nghttp2_hd_inflate_end_headers(inflater)
    }
    return fields
  }
}
