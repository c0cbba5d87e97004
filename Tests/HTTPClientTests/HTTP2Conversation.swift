// HTTP2Conversation.swift -- just enough of RFC 9113 to respond: frames are read, compressed header fields are not.

/// The server's side of one HTTP/2 connection.
final class HTTP2Conversation {
  private let stream: ByteStream
  private let connection: Int
  private let react: @Sendable (ReceivedRequest) -> Reaction
  private var waiting: [UInt32] = []
  private var bodies: [UInt32: [UInt8]] = [:]

  // Frame types and flags, RFC 9113 section 6.
  private static let data: UInt8 = 0
  private static let headers: UInt8 = 1
  private static let settings: UInt8 = 4
  private static let ping: UInt8 = 6
  private static let endStream: UInt8 = 1
  private static let acknowledge: UInt8 = 1
  private static let endHeaders: UInt8 = 4
  /// The largest frame without other agreement, RFC 9113 section 4.2.
  private static let frameLimit = 16_384
  /// `:status: 200` of the static table, RFC 7541 appendix A.
  private static let status200: [UInt8] = [0x88]

  init(_ stream: ByteStream, _ connection: Int, _ react: @escaping @Sendable (ReceivedRequest) -> Reaction) {
    self.stream = stream
    self.connection = connection
    self.react = react
  }

  func run() {
    guard stream.read(exactly: 24) != nil else { return }
    send(Self.settings, 0, 0, [])
    while let header = stream.read(exactly: 9) {
      let length = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
      let id = header[5...8].reduce(0) { $0 << 8 | UInt32($1) }
      guard let payload = stream.read(exactly: length) else { return }
      let (type, flags) = (header[3], header[4])
      switch type {
      case Self.settings where flags & Self.acknowledge == 0: send(Self.settings, Self.acknowledge, 0, [])
      case Self.ping where flags & Self.acknowledge == 0: send(Self.ping, Self.acknowledge, 0, payload)
      case Self.headers, Self.data:
        if type == Self.data { bodies[id, default: []] += payload }
        if flags & Self.endStream != 0, !respond(to: id) { return }
      default: break
      }
    }
  }

  /// - Returns: whether the connection goes on.
  private func respond(to id: UInt32) -> Bool {
    let request = ReceivedRequest(head: "", body: bodies.removeValue(forKey: id) ?? [], connection: connection)
    switch react(request) {
    case .send(let text): send(content: text, id)
    case .respondTogether(let count, let text):
      waiting.append(id)
      guard waiting.count == count else { break }
      for id in waiting { send(content: text, id) }
      waiting = []
    case .stall: break
    case .sendAndClose, .sendAndReset: return false
    }
    return true
  }

  private func send(content text: String, _ id: UInt32) {
    send(Self.headers, Self.endHeaders, id, Self.status200)
    var rest = Array(text.utf8)[...]
    repeat {
      let frame = rest.prefix(Self.frameLimit)
      rest = rest.dropFirst(frame.count)
      send(Self.data, rest.isEmpty ? Self.endStream : 0, id, Array(frame))
    } while !rest.isEmpty
  }

  private func send(_ type: UInt8, _ flags: UInt8, _ id: UInt32, _ payload: [UInt8]) {
    let count = payload.count
    let header = [UInt8(count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), type, flags]
    stream.write(header + (0..<4).reversed().map { UInt8(truncatingIfNeeded: id >> ($0 * 8)) } + payload)
  }
}
