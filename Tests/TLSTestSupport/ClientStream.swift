// ClientStream.swift -- a client's end of a TLS connection: what it offers and learns; every wait is bounded.

import CTLS
import Glibc

/// What a client offers in its handshake.
package struct TLSOffer: Sendable {
  /// The server that it names (SNI); nil for none.
  package var serverName: String?
  /// The lowest and the highest version, as they stand on the wire.
  package var versions = 0x0303...0x0304
  /// The protocols (RFC 7301); empty for no offer.
  package var protocols: [String] = []
  /// What it resumes; nil for a full handshake.
  package var session: TLSSession?

  package init(
    serverName: String? = nil, versions: ClosedRange<Int> = 0x0303...0x0304, protocols: [String] = [],
    session: TLSSession? = nil
  ) {
    self.serverName = serverName
    self.versions = versions
    self.protocols = protocols
    self.session = session
  }
}

/// A session that a later connection can resume.
package final class TLSSession: @unchecked Sendable {
  fileprivate let session: OpaquePointer

  fileprivate init(_ session: OpaquePointer) { self.session = session }

  deinit { SSL_SESSION_free(session) }

  /// The octets of early data that the server permits (RFC 8446 section 4.6.1).
  package var earlyData: UInt32 { SSL_SESSION_get_max_early_data(session) }
}

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
package final class ClientStream {
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
  private let context: OpaquePointer
  private let tls: OpaquePointer

  /// A write to a connection that the server has closed must not end the tests.
  private static let ignoresSignal: Void = { signal(SIGPIPE, SIG_IGN) }()

  /// Shakes hands.
  package init(_ descriptor: Int32, _ offer: TLSOffer, milliseconds: Int32 = 10_000) throws(HandshakeFailure) {
    _ = ClientStream.ignoresSignal
    self.descriptor = descriptor
    context = SSL_CTX_new(TLS_client_method())
    // Otherwise OpenSSL itself would not offer an old version.
    SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0")
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, offer.versions.lowerBound, nil)
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, offer.versions.upperBound, nil)
    let protocols = offer.protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    if !protocols.isEmpty { SSL_CTX_set_alpn_protos(context, protocols, UInt32(protocols.count)) }
    tls = SSL_new(context)
    SSL_set_fd(tls, descriptor)
    if let session = offer.session { SSL_set_session(tls, session.session) }
    offer.serverName?.withCString { name in
      _ = SSL_ctrl(
        tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), UnsafeMutableRawPointer(mutating: name))
    }
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

  deinit {
    SSL_free(tls)
    SSL_CTX_free(context)
  }

  /// The version that both sides speak, as it stands on the wire.
  package var version: Int { Int(SSL_version(tls)) }

  /// The protocol that the server has chosen; empty for none.
  package var chosenProtocol: String {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(tls, &name, &length)
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
  }

  /// Whether the server has resumed the session that was offered.
  package var isResumed: Bool { SSL_session_reused(tls) == 1 }

  /// The session; over TLS 1.3 it can be resumed only after the first octets of the server.
  package var session: TLSSession? { SSL_get1_session(tls).map { TLSSession($0) } }

  /// The subject of the server's certificate, such as `/CN=dns.test`.
  package var subject: String {
    guard let certificate = SSL_get1_peer_certificate(tls) else { return "" }
    defer { X509_free(certificate) }
    var text = [CChar](repeating: 0, count: 256)
    X509_NAME_oneline(X509_get_subject_name(certificate), &text, Int32(text.count))
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

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
