// ClientStream.swift -- a client's end of a TLS connection whose every wait is bounded.

import CTLS
import Glibc

/// Why a handshake has failed.
package enum HandshakeFailure: Error, Equatable {
  /// The server's alert (RFC 8446 section 6).
  case alert(Int)
  /// The server has closed the connection.
  case closed
  case timeout
  case other(String)
}

/// Checks no certificate. The socket does not block, and stays the caller's.
package final class ClientStream: ClientTLS {
  /// What comes of the server.
  package enum Reading: Equatable {
    case octets([UInt8])
    /// Nothing in time.
    case nothing
    /// The end, by close_notify.
    case notified
    /// The end, without close_notify.
    case ended
  }

  private let descriptor: Int32

  /// A write to a connection that the server has closed must not end the tests.
  private static let ignoresSignal: Void = { signal(SIGPIPE, SIG_IGN) }()

  /// Shakes hands.
  package init(_ descriptor: Int32, _ offer: TLSOffer, milliseconds: Int32 = 10_000) throws(HandshakeFailure) {
    _ = ClientStream.ignoresSignal
    self.descriptor = descriptor
    super.init(offer, over: descriptor)
    while true {
      ERR_clear_error()
      let result = SSL_connect(tls)
      if result == 1 { return }
      let status = SSL_get_error(tls, result)
      if status == SSL_ERROR_WANT_READ || status == SSL_ERROR_WANT_WRITE {
        guard isReady(status == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, milliseconds) else { throw .timeout }
        continue
      }
      let code = ERR_get_error()
      let reason = Int(ERR_GET_REASON(code))
      if (1_000..<1_256).contains(reason) { throw .alert(reason - 1_000) }
      guard status == SSL_ERROR_SSL, code != 0, reason != SSL_R_UNEXPECTED_EOF_WHILE_READING else { throw .closed }
      throw .other(ERR_reason_error_string(code).map { String(cString: $0) } ?? "\(code)")
    }
  }

  /// The version that both sides speak, as it stands on the wire.
  package var version: Int { Int(SSL_version(tls)) }

  /// Sends everything; false if the server does not take it.
  package func write(_ octets: [UInt8], milliseconds: Int32 = 10_000) -> Bool {
    guard !octets.isEmpty else { return true }
    while true {
      ERR_clear_error()
      let count = SSL_write(tls, octets, Int32(octets.count))
      if count > 0 { return true }
      switch SSL_get_error(tls, count) {
      case SSL_ERROR_WANT_WRITE where isReady(POLLOUT, milliseconds): continue
      default: return false
      }
    }
  }

  /// What comes next.
  package func read(milliseconds: Int32 = 10_000) -> Reading {
    while true {
      ERR_clear_error()
      var block = [UInt8](repeating: 0, count: 16_384)
      let count = SSL_read(tls, &block, Int32(block.count))
      if count > 0 { return .octets(Array(block[..<Int(count)])) }
      switch SSL_get_error(tls, count) {
      case SSL_ERROR_ZERO_RETURN: return .notified
      case SSL_ERROR_WANT_READ:
        guard isReady(POLLIN, milliseconds) else { return .nothing }
      default: return .ended
      }
    }
  }

  /// Asks for another handshake on the connection, which TLS 1.2 has; false if the server refuses.
  package func renegotiate(milliseconds: Int32 = 10_000) -> Bool {
    SSL_renegotiate(tls)
    while true {
      ERR_clear_error()
      let result = SSL_do_handshake(tls)
      if result == 1 { return true }
      switch SSL_get_error(tls, result) {
      case SSL_ERROR_WANT_READ where isReady(POLLIN, milliseconds): continue
      default: return false
      }
    }
  }

  /// Says that nothing follows (close_notify, RFC 8446 section 6.1).
  package func sayGoodbye() { SSL_shutdown(tls) }

  private func isReady(_ events: Int32, _ milliseconds: Int32) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
    while true {
      let count = poll(&entry, 1, milliseconds)
      if count < 0, errno == EINTR { continue }
      return count > 0
    }
  }
}
