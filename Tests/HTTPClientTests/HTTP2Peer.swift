// HTTP2Peer.swift -- what an HTTP/2 server of a test allows, what it does to a stream, and what it saw.

import Synchronization
import TestSupport

/// Error codes, RFC 9113 section 7.
enum HTTP2Error: UInt32, Sendable {
  case none = 0
  case refusedStream = 7
  case enhanceYourCalm = 11
}

/// One thing that a server does when a request has arrived, to its stream or to the connection.
enum HTTP2Act: Sendable {
  /// Responds with a 200 of this content.
  case respond(String)
  /// Keeps the stream.
  case hold
  /// Responds to every stream that is kept.
  case respondToHeld(String)
  /// Sends a 103 with an `age`.
  case hint
  /// Responds with a 200 of this content and an `age` after it.
  case respondWithTrailer(String)
  /// Responds with a 200 and `count` fields of 4,000 octets.
  case respondWithFields(count: Int)
  /// Responds with a 302.
  case redirect(String)
  /// Begins a 200 with this content, and resets the stream before its end.
  case cutOff(String, HTTP2Error)
  /// Content of the connection itself, which RFC 9113 section 6.1 makes an error of the connection.
  case breakRules
  /// RST_STREAM.
  case reset(HTTP2Error)
  /// GOAWAY; the last stream is the highest that was or may be processed.
  case goAway(last: UInt32, HTTP2Error)
  /// SETTINGS with this SETTINGS_MAX_CONCURRENT_STREAMS.
  case allow(streams: UInt32)
  /// Ends the connection.
  case close
  /// The same, after close_notify.
  case sayGoodbyeAndClose
  /// Lets the end of the connection be a reset.
  case resetAtEnd
  /// Begins a 200 with this content, and does not end it.
  case begin(String)
  /// Sends this number of TLS messages without content, all at once: new keys (RFC 8446 section 4.6.3).
  case updateKeys(Int)
  /// Sends this number of key updates that request one in return, and a frame without effect after each.
  case askForKeys(Int)
  /// Anything else. Nothing is read or written meanwhile.
  case run(@Sendable () -> Void)
  /// Keeps back what is sent, and sends it in one TLS record.
  case cork
  case uncork
  /// One frame of these octets.
  case frame(type: UInt8, flags: UInt8, stream: UInt32, [UInt8])
}

/// What all connections of a server share.
final class HTTP2Peer: Sendable {
  /// SETTINGS_MAX_CONCURRENT_STREAMS of the first SETTINGS; nil for none.
  let maxStreams: UInt32?
  /// The same of all connections but the first.
  let laterStreams: UInt32?
  /// Whether a limit binds as soon as it is sent, as with nginx and nghttp2, and not when it is acknowledged.
  let isStrict: Bool
  /// Connections, from the first on, on which nothing is said after the TLS handshake.
  private let silentConnections: Int
  /// Connections that begin without SETTINGS.
  let lateConnections: Set<Int>
  /// Connections that are closed before the TLS handshake.
  let refusedConnections: Set<Int>
  /// Connections that choose HTTP/1.1.
  let http1Connections: Set<Int>
  /// Octets of the receive buffer of each connection; nil for the system's default.
  let room: Int32?
  /// Opens when a PING has been answered. Until then no connection but the first shakes hands; nil if they need not wait.
  let pingWasAnswered: Gate?
  /// Whether TLS sessions are resumed. If not, the server writes nothing after the client's part of the handshake, and reads
  /// what a client has sent that is gone by then.
  let resumes: Bool
  private let state = Mutex(State())

  private struct State {
    var most = 0
    var requests = 0
    var tooMany = 0
    var acknowledged: [UInt32] = []
    var mute: Set<Int> = []
    var settings: [UInt16: UInt32] = [:]
  }

  init(
    maxStreams: UInt32? = nil, laterStreams: UInt32? = nil, isStrict: Bool = false, silentConnections: Int = 0,
    lateConnections: Set<Int> = [], refusedConnections: Set<Int> = [], http1Connections: Set<Int> = [],
    room: Int32? = nil, pingWasAnswered: Gate? = nil, resumes: Bool = true
  ) {
    self.maxStreams = maxStreams
    self.laterStreams = laterStreams ?? maxStreams
    self.isStrict = isStrict
    self.silentConnections = silentConnections
    self.lateConnections = lateConnections
    self.refusedConnections = refusedConnections
    self.http1Connections = http1Connections
    self.room = room
    self.pingWasAnswered = pingWasAnswered
    self.resumes = resumes
  }

  /// The most streams of one connection at a time under a limit that the client had acknowledged.
  var mostStreams: Int { state.withLock { $0.most } }
  /// HEADERS frames that arrived, also those that are refused or ignored.
  var requests: Int { state.withLock { $0.requests } }
  /// How often the client opened a stream above a limit that it had acknowledged.
  var streamsTooMany: Int { state.withLock { $0.tooMany } }

  var acknowledgedLimits: [UInt32] { state.withLock { $0.acknowledged } }

  /// The settings of the client, by their identifiers.
  var settings: [UInt16: UInt32] { state.withLock { $0.settings } }

  func isSilent(_ connection: Int) -> Bool { connection < silentConnections }

  /// From now on nothing is said on a connection, also to a PING.
  func mute(_ connection: Int) { state.withLock { _ = $0.mute.insert(connection) } }

  func isMute(_ connection: Int) -> Bool { state.withLock { $0.mute.contains(connection) } }

  func noteRequest() { state.withLock { $0.requests += 1 } }

  /// Notes the entries of a SETTINGS frame.
  func note(settings payload: [UInt8]) {
    for entry in stride(from: 0, to: payload.count - 5, by: 6) {
      let value = payload[entry + 2..<entry + 6].reduce(0) { $0 << 8 | UInt32($1) }
      state.withLock { $0.settings[UInt16(payload[entry]) << 8 | UInt16(payload[entry + 1])] = value }
    }
  }

  func note(acknowledged limit: UInt32?) {
    guard let limit else { return }
    state.withLock { $0.acknowledged.append(limit) }
  }

  func note(streams: Int, limit: UInt32?) {
    guard let limit else { return }
    state.withLock { state in
      state.most = max(state.most, streams)
      if streams > limit { state.tooMany += 1 }
    }
  }
}
