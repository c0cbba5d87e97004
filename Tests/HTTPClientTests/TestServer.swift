// TestServer.swift -- a server on loopback that does what a test says: HTTP/1.1, HTTP/2, TLS, and none of them.

import CCurl
import Glibc
import Synchronization
import TLSTestSupport

/// What the server does with one request.
enum Reaction: Sendable {
  /// Sends those octets and waits for the next request. With HTTP/2 they are the content of a 200.
  case send(String)
  /// Sends those octets and closes the connection.
  case sendAndClose(String)
  /// Sends those octets and resets the connection.
  case sendAndReset(String)
  /// HTTP/1.1 over TLS: sends this number of messages without content, all at once, and then those octets.
  case sendAfterEmptyRecords(Int, String)
  /// Says nothing.
  case stall
  /// HTTP/2: keeps the request until `count` wait, then responds to each in turn, the oldest first.
  case respondTogether(count: Int, String)
  /// HTTP/2: keeps the request until the client has nothing more to say, then responds to all that are kept.
  case respondWhenQuiet(String)
  /// HTTP/2: does these things in turn.
  case acts([HTTP2Act])
}

/// A request as it was read.
struct ReceivedRequest: Sendable {
  /// Request line and header fields; empty with HTTP/2, whose header compression is not undone here.
  var head: String
  var body: [UInt8]
  /// The connection's number, from 0.
  var connection: Int
  /// Whether the connection resumed the TLS session of an earlier one.
  var isResumed = false
  /// What became of TLS early data.
  var earlyData = EarlyData()
  /// The stream's number; 0 with HTTP/1.1.
  var stream: UInt32 = 0
}

/// Listens on a free port of loopback; each connection has a thread. Ends with `stop`.
final class TestServer: Sendable {
  let port: UInt16
  private let listener: Int32
  private let tls: TLSContext?
  /// For connections that choose HTTP/1.1.
  private let plainTLS: TLSContext?
  private let peer: HTTP2Peer
  private let react: @Sendable (ReceivedRequest) -> Reaction
  private let state = Mutex(State())

  private struct State {
    var accepted = 0
    var open: Set<Int32> = []
    var unused: Set<Int32> = []
    var threads: [pthread_t] = []
    var isStopped = false
  }

  /// - Parameters:
  ///   - http2: whether HTTP/2 is offered, which takes TLS.
  ///   - highestTLS: the highest version of TLS, as it stands on the wire.
  ///   - groups: the groups for the key exchange; nil for OpenSSL's.
  ///   - copies: how often the certificate is sent once more.
  ///   - peer: how HTTP/2 is spoken.
  init(
    tls: Bool = false, http2: Bool = false, highestTLS: Int = 0x0304, groups: String? = nil, copies: Int = 0,
    peer: HTTP2Peer = HTTP2Peer(), address: UInt32 = 0x7F00_0001, port: UInt16 = 0,
    react: @escaping @Sendable (ReceivedRequest) -> Reaction
  ) {
    func context(http2: Bool) -> TLSContext {
      TLSContext(
        certificate: Certificates.server, key: Certificates.serverKey, http2: http2, highest: highestTLS,
        groups: groups, copies: copies, resumes: peer.resumes)
    }
    self.tls = tls ? context(http2: http2) : nil
    plainTLS = tls && http2 ? context(http2: false) : nil
    self.peer = peer
    self.react = react
    // OpenSSL writes without regard to a peer that is gone.
    signal(SIGPIPE, SIG_IGN)
    (listener, self.port) = listeningSocket(backlog: 512, room: peer.room, address: address, port: port)
    spawn { $0.acceptAll() }
  }

  /// Connections that were accepted.
  var accepted: Int { state.withLock { $0.accepted } }

  /// Connections that are open and have sent no request.
  var unused: Int { state.withLock { $0.unused.count } }

  /// Closes connections that have sent no request.
  func closeUnused() {
    state.withLock { state in
      for descriptor in state.unused { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  /// Takes no more connections: the host refuses them.
  func refuse() { shutdown(listener, Int32(SHUT_RDWR)) }

  /// Closes everything and waits for the threads.
  func stop() {
    let threads = state.withLock { state in
      state.isStopped = true
      shutdown(listener, Int32(SHUT_RDWR))
      for descriptor in state.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
      return state.threads
    }
    for thread in threads { pthread_join(thread, nil) }
    for thread in state.withLock({ $0.threads }).dropFirst(threads.count) { pthread_join(thread, nil) }
    close(listener)
  }

  private func spawn(_ body: @escaping @Sendable (TestServer) -> Void) {
    let thread = startThread { body(self) }
    state.withLock { $0.threads.append(thread) }
  }

  private func acceptAll() {
    while true {
      let descriptor = accept(listener, .init(__sockaddr__: nil), nil)
      guard descriptor >= 0 else { return }
      let number = state.withLock { state in
        state.open.insert(descriptor)
        state.unused.insert(descriptor)
        state.accepted += 1
        if state.isStopped { shutdown(descriptor, Int32(SHUT_RDWR)) }
        return state.accepted - 1
      }
      spawn { $0.serve(descriptor, number) }
    }
  }

  private func serve(_ descriptor: Int32, _ number: Int) {
    let context = peer.http1Connections.contains(number) ? plainTLS : tls
    if number > 0 { peer.pingWasAnswered?.wait() }
    if !peer.refusedConnections.contains(number), let stream = PeerStream(descriptor, context) {
      if stream.isHTTP2 {
        HTTP2Conversation(stream, number, peer, react).run()
      } else {
        converse(stream, number)
      }
    }
    state.withLock { state in
      state.open.remove(descriptor)
      state.unused.remove(descriptor)
    }
    close(descriptor)
  }

  private func converse(_ stream: PeerStream, _ number: Int) {
    while let request = stream.readRequest(connection: number) {
      state.withLock { _ = $0.unused.remove(stream.descriptor) }
      switch react(request) {
      case .send(let text): stream.write(Array(text.utf8))
      case .sendAndClose(let text):
        stream.write(Array(text.utf8))
        return
      case .sendAndReset(let text):
        stream.write(Array(text.utf8))
        stream.resetsAtEnd()
        return
      case .sendAfterEmptyRecords(let count, let text):
        stream.writeEmptyRecords(count)
        stream.write(Array(text.utf8))
      case .stall, .respondTogether, .respondWhenQuiet, .acts: continue
      }
    }
  }
}

extension PeerStream {
  /// An HTTP/1.1 request with a body as long as Content-Length says.
  fileprivate func readRequest(connection: Int) -> ReceivedRequest? {
    guard let head = read(through: Array("\r\n\r\n".utf8)) else { return nil }
    let text = String(decoding: head, as: UTF8.self)
    let field = text.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length: ") }
    guard let body = read(exactly: field.flatMap { Int($0.dropFirst(16)) } ?? 0) else { return nil }
    return ReceivedRequest(
      head: text, body: body, connection: connection, isResumed: isResumed, earlyData: earlyData)
  }
}

/// An HTTP/1.1 response with a Content-Length.
func response(_ body: String, fields: String = "", status: String = "200 OK") -> String {
  "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\(fields)\r\n\(body)"
}
