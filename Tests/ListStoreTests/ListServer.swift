// ListServer.swift -- a server on loopback that answers by a script: HTTP/1.1, with TLS or without.

import Glibc
import Synchronization
import TLSTestSupport

/// Listens on a free port; each connection has a thread. Ends with `stop`.
final class ListServer: Sendable {
  let port: UInt16
  private let listener: Int32
  private let tls: TLSContext?
  private let answer: @Sendable (_ head: String) -> Answer
  private let state = Mutex(State())

  /// What is sent; the connection is closed then, unless it hangs.
  struct Answer: Sendable {
    var octets: [UInt8]
    /// Whether nothing follows, and the connection stays open.
    var hangs = false
    /// Sends the octets again and again.
    var isEndless = false

    init(_ text: String, hangs: Bool = false, isEndless: Bool = false) {
      self.init(Array(text.utf8), hangs: hangs, isEndless: isEndless)
    }

    init(_ octets: [UInt8], hangs: Bool = false, isEndless: Bool = false) {
      (self.octets, self.hangs, self.isEndless) = (octets, hangs, isEndless)
    }

    /// A whole response.
    static func response(_ body: [UInt8], status: String = "200 OK", _ fields: String...) -> Answer {
      let head = (["HTTP/1.1 \(status)", "Content-Length: \(body.count)"] + fields).joined(separator: "\r\n")
      return Answer(Array("\(head)\r\n\r\n".utf8) + body)
    }

    static func response(_ body: String, status: String = "200 OK", _ fields: String...) -> Answer {
      let head = (["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + fields).joined(separator: "\r\n")
      return Answer("\(head)\r\n\r\n\(body)")
    }

    static func redirect(_ location: String, status: String = "302 Found") -> Answer {
      response("", status: status, "Location: \(location)")
    }
  }

  private struct State {
    var heads: [String] = []
    var open: Set<Int32> = []
    var threads: [pthread_t] = []
    var isStopped = false
  }

  init(tls: Bool = false, answer: @escaping @Sendable (_ head: String) -> Answer) {
    // OpenSSL writes without regard to a peer that is gone.
    signal(SIGPIPE, SIG_IGN)
    self.tls = tls ? TLSContext(certificate: Certificates.server, key: Certificates.serverKey) : nil
    self.answer = answer
    (listener, port) = listeningSocket(backlog: 16)
    spawn { $0.acceptAll() }
  }

  /// The heads of all requests so far.
  var heads: [String] { state.withLock { $0.heads } }

  /// Closes everything and waits for the threads.
  func stop() {
    while true {
      let thread = state.withLock { state in
        state.isStopped = true
        shutdown(listener, Int32(SHUT_RDWR))
        for descriptor in state.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        return state.threads.popLast()
      }
      guard let thread else { break }
      pthread_join(thread, nil)
    }
    close(listener)
  }

  private func spawn(_ body: @escaping @Sendable (ListServer) -> Void) {
    let thread = startThread { body(self) }
    state.withLock { $0.threads.append(thread) }
  }

  private func acceptAll() {
    while true {
      let descriptor = accept(listener, .init(__sockaddr__: nil), nil)
      guard descriptor >= 0 else { return }
      state.withLock { state in
        state.open.insert(descriptor)
        if state.isStopped { shutdown(descriptor, Int32(SHUT_RDWR)) }
      }
      spawn { $0.serve(descriptor) }
    }
  }

  private func serve(_ descriptor: Int32) {
    if let stream = PeerStream(descriptor, tls), let head = stream.read(through: Array("\r\n\r\n".utf8)) {
      let text = String(decoding: head, as: UTF8.self)
      state.withLock { $0.heads.append(text) }
      let answer = answer(text)
      stream.write(answer.octets)
      while answer.isEndless, !state.withLock({ $0.isStopped }), isOpen(descriptor) { stream.write(answer.octets) }
      if answer.hangs { _ = stream.read(exactly: 1) }
      if tls != nil { stream.sayGoodbye() }
    }
    state.withLock { _ = $0.open.remove(descriptor) }
    close(descriptor)
  }

  private func isOpen(_ descriptor: Int32) -> Bool {
    var failure: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    var octet: UInt8 = 0
    let received = recv(descriptor, &octet, 1, Int32(MSG_DONTWAIT | MSG_PEEK))
    return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &failure, &length) == 0 && failure == 0
      && (received > 0 || received < 0 && errno == EAGAIN)
  }
}
