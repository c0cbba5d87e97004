// HTTP2Conversation.swift -- just enough of RFC 9113 to respond: frames are read, compressed header fields are not.

import TLSTestSupport

/// The server's side of one HTTP/2 connection.
final class HTTP2Conversation {
  private let stream: PeerStream
  private let connection: Int
  private let peer: HTTP2Peer
  private let react: @Sendable (ReceivedRequest) -> Reaction
  /// Streams whose response is kept back.
  private var held: [UInt32] = []
  /// Streams that get this content when the client has nothing more to say.
  private var quietContent: String?
  private var bodies: [UInt32: [UInt8]] = [:]
  private var open: Set<UInt32> = []
  /// The last stream that this side promised to respond to.
  private var lastStream = UInt32.max
  /// Limits of streams that were sent and not acknowledged yet.
  private var sentLimits: [UInt32?] = []
  private var limit: UInt32?
  private var hasBegun = false
  private var owesAcknowledgement = false

  // Frame types and flags, RFC 9113 section 6.
  private static let data: UInt8 = 0
  private static let headers: UInt8 = 1
  private static let reset: UInt8 = 3
  private static let settings: UInt8 = 4
  private static let ping: UInt8 = 6
  private static let goAway: UInt8 = 7
  private static let continuation: UInt8 = 9
  /// A type that is ignored (RFC 9113 section 5.5).
  private static let unknown: UInt8 = 0xF0
  private static let endStream: UInt8 = 1
  private static let acknowledge: UInt8 = 1
  private static let endHeaders: UInt8 = 4
  /// SETTINGS_MAX_CONCURRENT_STREAMS, RFC 9113 section 6.5.2.
  private static let maxConcurrentStreams: UInt8 = 3
  /// The largest frame without other agreement, RFC 9113 section 4.2.
  private static let frameLimit = 16_384
  /// `:status: 200` of the static table, RFC 7541 appendix A.
  private static let status200: [UInt8] = [0x88]
  /// How long the client must have said nothing to be quiet.
  private static let quietMilliseconds: Int32 = 2

  init(
    _ stream: PeerStream, _ connection: Int, _ peer: HTTP2Peer,
    _ react: @escaping @Sendable (ReceivedRequest) -> Reaction
  ) {
    self.stream = stream
    self.connection = connection
    self.peer = peer
    self.react = react
  }

  func run() {
    if peer.isSilent(connection) {
      while stream.read(exactly: 1) != nil {}
      return
    }
    guard stream.read(exactly: 24) != nil else { return }
    if !peer.lateConnections.contains(connection) { sendLimit(connection == 0 ? peer.maxStreams : peer.laterStreams) }
    while let header = nextHeader() {
      let length = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
      let id = header[5...8].reduce(0) { $0 << 8 | UInt32($1) }
      guard let payload = stream.read(exactly: length) else { return }
      guard !peer.isMute(connection) else { continue }
      if header[3] == Self.headers { peer.noteRequest() }
      let (type, flags) = (header[3], header[4])
      switch type {
      case Self.settings where flags & Self.acknowledge == 0:
        peer.note(settings: payload)
        // Nothing comes before the own SETTINGS.
        if hasBegun { send(Self.settings, Self.acknowledge, 0, []) } else { owesAcknowledgement = true }
      case Self.settings where !sentLimits.isEmpty:
        limit = sentLimits.removeFirst()
        peer.note(acknowledged: limit)
      case Self.ping where flags & Self.acknowledge == 0:
        send(Self.ping, Self.acknowledge, 0, payload)
        peer.pingWasAnswered?.open()
      case Self.reset: end(id)
      case Self.headers where !begin(id): continue
      case Self.headers, Self.data:
        guard open.contains(id) else { continue }
        if type == Self.data { bodies[id, default: []] += payload }
        if flags & Self.endStream != 0, !respond(to: id) { return }
      default: break
      }
    }
  }

  private func nextHeader() -> [UInt8]? {
    if let content = quietContent, !held.isEmpty, stream.isQuiet(for: Self.quietMilliseconds) { release(content) }
    return stream.read(exactly: 9)
  }

  // MARK: - Streams

  /// - Returns: whether it is responded to. What comes after a GOAWAY that does not cover it is ignored (RFC 9113 section
  ///   6.8). A stream too many is refused (section 5.1.2), from the acknowledgement of the limit on (section 6.5.3) or from
  ///   its sending.
  private func begin(_ id: UInt32) -> Bool {
    guard id <= lastStream else { return false }
    open.insert(id)
    peer.note(streams: open.count, limit: limit)
    guard let limit, open.count > limit else { return true }
    send(Self.reset, 0, id, octets(HTTP2Error.refusedStream.rawValue))
    end(id)
    return false
  }

  private func end(_ id: UInt32) {
    open.remove(id)
    bodies[id] = nil
    held.removeAll { $0 == id }
  }

  /// - Returns: whether the connection goes on.
  private func respond(to id: UInt32) -> Bool {
    let request = ReceivedRequest(
      head: "", body: bodies[id] ?? [], connection: connection, isResumed: stream.isResumed,
      earlyData: stream.earlyData, stream: id)
    switch react(request) {
    case .send(let text): send(content: text, id)
    case .respondTogether(let count, let text):
      held.append(id)
      if held.count == count { release(text) }
    case .respondWhenQuiet(let text):
      quietContent = text
      held.append(id)
    case .acts(let acts): return acts.allSatisfy { act($0, id) }
    case .stall: break
    case .sendAndClose, .sendAndReset, .sendAfterEmptyRecords: return false
    }
    return true
  }

  private func release(_ text: String) {
    for id in held { send(content: text, id) }
  }

  /// - Returns: whether the connection goes on.
  private func act(_ act: HTTP2Act, _ id: UInt32) -> Bool {
    switch act {
    case .respond(let text): send(content: text, id)
    case .hold: held.append(id)
    case .respondToHeld(let text): release(text)
    case .hint: send(Self.headers, Self.endHeaders, id, field(":status", "103") + field("age", "7"))
    case .respondWithTrailer(let text):
      send(Self.headers, Self.endHeaders, id, Self.status200)
      send(Self.data, 0, id, Array(text.utf8))
      send(Self.headers, Self.endHeaders | Self.endStream, id, field("age", "7"))
      end(id)
    case .respondWithFields(let count):
      send(Self.headers, count == 0 ? Self.endHeaders : 0, id, Self.status200)
      for number in 1...count {
        let text = field("x", String(repeating: "x", count: 4000))
        send(Self.continuation, number == count ? Self.endHeaders : 0, id, text)
      }
      send(Self.data, Self.endStream, id, [])
      end(id)
    case .redirect(let target):
      send(Self.headers, Self.endHeaders | Self.endStream, id, field(":status", "302") + field("location", target))
      end(id)
    case .cutOff(let text, let error):
      send(Self.headers, Self.endHeaders, id, Self.status200)
      send(Self.data, 0, id, Array(text.utf8))
      send(Self.reset, 0, id, octets(error.rawValue))
      end(id)
    case .breakRules: send(Self.data, 0, 0, [1])
    case .reset(let error):
      send(Self.reset, 0, id, octets(error.rawValue))
      end(id)
    case .goAway(let last, let error):
      send(Self.goAway, 0, 0, octets(last) + octets(error.rawValue))
      lastStream = last
      for id in open where id > last { end(id) }
    case .allow(let streams): sendLimit(streams)
    case .close: return false
    case .sayGoodbyeAndClose:
      stream.sayGoodbye()
      return false
    case .resetAtEnd: stream.resetsAtEnd()
    case .begin(let text):
      send(Self.headers, Self.endHeaders, id, Self.status200)
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        let part = rest.prefix(16_000)
        rest = rest.dropFirst(part.count)
        send(Self.data, 0, id, Array(part))
      }
    case .cork: stream.cork()
    case .uncork: stream.uncork()
    case .updateKeys(let count): stream.writeEmptyRecords(count)
    case .askForKeys(let count):
      stream.prepare {
        for _ in 0..<count {
          stream.updateKey(asksBack: true)
          send(Self.unknown, 0, 0, [])
        }
      }
    case .run(let body): body()
    case .frame(let type, let flags, let stream, let octets): send(type, flags, stream, octets)
    }
    return true
  }

  // MARK: - Frames

  private func sendLimit(_ streams: UInt32?) {
    sentLimits.append(streams)
    if peer.isStrict { limit = streams }
    send(Self.settings, 0, 0, streams.map { [0, Self.maxConcurrentStreams] + octets($0) } ?? [])
    hasBegun = true
    if owesAcknowledgement { send(Self.settings, Self.acknowledge, 0, []) }
    owesAcknowledgement = false
  }

  private func send(content text: String, _ id: UInt32) {
    send(Self.headers, Self.endHeaders, id, Self.status200)
    var rest = Array(text.utf8)[...]
    repeat {
      let frame = rest.prefix(Self.frameLimit)
      rest = rest.dropFirst(frame.count)
      send(Self.data, rest.isEmpty ? Self.endStream : 0, id, Array(frame))
    } while !rest.isEmpty
    end(id)
  }

  private func send(_ type: UInt8, _ flags: UInt8, _ id: UInt32, _ payload: [UInt8]) {
    let count = payload.count
    let header = [UInt8(count >> 16), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), type, flags]
    stream.write(header + octets(id) + payload)
  }

  /// A literal that no table keeps (RFC 7541 section 6.2.2).
  private func field(_ name: String, _ value: String) -> [UInt8] {
    [0x00] + text(name) + text(value)
  }

  /// A text without Huffman code after its length (RFC 7541 sections 5.1 and 5.2).
  private func text(_ text: String) -> [UInt8] {
    var left = text.utf8.count
    guard left >= 127 else { return [UInt8(left)] + Array(text.utf8) }
    var length: [UInt8] = [127]
    left -= 127
    while left >= 128 {
      length.append(UInt8(left % 128 + 128))
      left /= 128
    }
    return length + [UInt8(left)] + Array(text.utf8)
  }

  private func octets(_ number: UInt32) -> [UInt8] {
    (0..<4).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
  }
}
