// HTTP2Peer.swift -- a client that writes the frames of HTTP/2 as a test wants them.

import CHTTP2
import Glibc

/// Frames as they come and go, over a socket that does not block.
final class HTTP2Peer {
  struct Frame {
    var type: UInt8
    var flags: UInt8
    var stream: Int32
    var payload: [UInt8]
  }

  /// What has come of one answer.
  struct Answer {
    var fields: [String: String] = [:]
    var body: [UInt8] = []
    var isWhole = false
    var resetCode: UInt32?
    var status: String { fields[":status"] ?? "" }
  }

  private let descriptor: Int32
  private var input: [UInt8] = []
  private var output: [UInt8] = []
  private var inflater: OpaquePointer?
  private(set) var frames: [Frame] = []
  private(set) var answers: [Int32: Answer] = [:]
  private(set) var hasEnded = false
  /// Whether it acknowledges settings; the server does not hold them against it before.
  var acknowledges = true

  /// Owns the socket; sends the preface and empty settings.
  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    nghttp2_hd_inflate_new(&inflater)
    send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
    send(4, 0, 0, [])
  }

  deinit {
    nghttp2_hd_inflate_del(inflater)
    close(descriptor)
  }

  /// Sends octets, or keeps them until `poll` if the server takes no more: it may be on the same thread.
  func send(_ octets: [UInt8]) {
    output += octets
    flush()
  }

  /// Whether the server takes no more at the moment.
  var isCongested: Bool {
    flush()
    return !output.isEmpty
  }

  private func flush() {
    guard !output.isEmpty else { return }
    let count = output.withUnsafeBytes {
      Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
    }
    if count > 0 { output.removeFirst(count) }
  }

  /// Sends a frame.
  func send(_ type: UInt8, _ flags: UInt8, _ stream: Int32, _ payload: [UInt8]) {
    send(HTTP2Peer.frame(type, flags, stream, payload))
  }

  static func frame(_ type: UInt8, _ flags: UInt8, _ stream: Int32, _ payload: [UInt8]) -> [UInt8] {
    let (length, number) = (payload.count, UInt32(stream))
    return [UInt8(length >> 16), UInt8(length >> 8 & 255), UInt8(length & 255), type, flags]
      + [UInt8(number >> 24), UInt8(number >> 16 & 255), UInt8(number >> 8 & 255), UInt8(number & 255)] + payload
  }

  /// A header section of literal fields (RFC 7541 section 6.2.2).
  static func section(_ fields: [(String, String)]) -> [UInt8] {
    fields.flatMap { [0] + text($0) + text($1) }
  }

  private static func text(_ text: String) -> [UInt8] {
    let octets = Array(text.utf8)
    guard octets.count >= 127 else { return [UInt8(octets.count)] + octets }
    var (rest, length) = (octets.count - 127, [UInt8(127)])
    while rest >= 128 {
      length.append(UInt8(rest & 127 | 128))
      rest >>= 7
    }
    return length + [UInt8(rest)] + octets
  }

  static func fields(_ method: String, _ path: String, _ more: [(String, String)] = []) -> [(String, String)] {
    [(":method", method), (":scheme", "https"), (":path", path), (":authority", "dns.test")] + more
  }

  /// Sends a request; without a body it is whole.
  func request(
    _ stream: Int32, _ path: String, _ more: [(String, String)] = [], method: String = "GET", body: [UInt8]? = nil
  ) {
    send(1, body == nil ? 5 : 4, stream, HTTP2Peer.section(HTTP2Peer.fields(method, path, more)))
    if let body { send(0, 1, stream, body) }
  }

  /// Says that nothing follows.
  func endInput() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Takes what has come.
  func poll() {
    flush()
    var block = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(descriptor, &block, block.count, Int32(MSG_DONTWAIT))
      if count == 0 || count < 0 && errno != EAGAIN { hasEnded = true }
      guard count > 0 else { break }
      input += block[..<count]
    }
    while input.count >= 9 {
      let length = Int(input[0]) << 16 | Int(input[1]) << 8 | Int(input[2])
      guard input.count >= 9 + length else { return }
      let stream = input[5..<9].reduce(Int32(0)) { $0 << 8 | Int32($1) }
      let frame = Frame(type: input[3], flags: input[4], stream: stream, payload: Array(input[9..<(9 + length)]))
      input.removeFirst(9 + length)
      frames.append(frame)
      take(frame)
    }
  }

  private func take(_ frame: Frame) {
    switch frame.type {
    case 0:
      answers[frame.stream, default: Answer()].body += frame.payload
      if frame.flags & 1 != 0 { answers[frame.stream]?.isWhole = true }
    case 1:
      answers[frame.stream, default: Answer()].fields = inflate(frame.payload)
      if frame.flags & 1 != 0 { answers[frame.stream]?.isWhole = true }
    case 3: answers[frame.stream, default: Answer()].resetCode = frame.payload.reduce(0) { $0 << 8 | UInt32($1) }
    case 4 where frame.flags & 1 == 0 && acknowledges: send(4, 1, 0, [])
    default: break
    }
  }

  private func inflate(_ octets: [UInt8]) -> [String: String] {
    var fields: [String: String] = [:]
    var octets = octets
    octets.withUnsafeMutableBufferPointer { buffer in
      var begin = 0
      while true {
        var (field, flags) = (nghttp2_nv(), Int32(0))
        let count = nghttp2_hd_inflate_hd2(
          inflater, &field, &flags, buffer.baseAddress! + begin, buffer.count - begin, 1)
        guard count >= 0 else { return }
        begin += count
        if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
          let name = String(decoding: UnsafeBufferPointer(start: field.name, count: field.namelen), as: UTF8.self)
          fields[name] = String(decoding: UnsafeBufferPointer(start: field.value, count: field.valuelen), as: UTF8.self)
        }
        guard flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) == 0 else { break }
      }
      nghttp2_hd_inflate_end_headers(inflater)
    }
    return fields
  }
}
