// PeerClient.swift -- a client's end of a TLS connection, as hostile as a test wants it.

import CTLS
import Glibc

/// A session that a client may resume.
package final class PeerSession: @unchecked Sendable {
  fileprivate let session: OpaquePointer

  fileprivate init(_ session: OpaquePointer) { self.session = session }

  deinit { SSL_SESSION_free(session) }
}

/// Blocking; checks no certificate.
package final class PeerClient {
  private let descriptor: Int32
  private let context: OpaquePointer
  private let tls: OpaquePointer

  /// Nil where the handshake fails. Owns the socket.
  ///
  /// - Parameters:
  ///   - version: the only version that is spoken, as it stands on the wire.
  ///   - protocols: what is offered (RFC 7301); empty for no offer.
  ///   - serverName: the name that is sent (SNI); nil for none.
  ///   - session: of an earlier connection, to be resumed.
  package init?(
    _ descriptor: Int32, version: Int = 0x0304, protocols: [String] = [], serverName: String? = nil,
    resuming session: PeerSession? = nil
  ) {
    self.descriptor = descriptor
    context = SSL_CTX_new(TLS_client_method())
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, version, nil)
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, version, nil)
    let offer = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    if !offer.isEmpty { SSL_CTX_set_alpn_protos(context, offer, UInt32(offer.count)) }
    tls = SSL_new(context)
    SSL_set_fd(tls, descriptor)
    if let serverName {
      serverName.withCString {
        _ = SSL_ctrl(
          tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), UnsafeMutableRawPointer(mutating: $0))
      }
    }
    if let session { SSL_set_session(tls, session.session) }
    guard SSL_connect(tls) == 1 else { return nil }
  }

  deinit {
    SSL_free(tls)
    SSL_CTX_free(context)
    close(descriptor)
  }

  /// What both sides agreed on; empty for none.
  package var chosenProtocol: String {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(tls, &name, &length)
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
  }

  /// Whether the handshake has resumed a session.
  package var isResumed: Bool { SSL_session_reused(tls) == 1 }

  /// The session, for a later connection. In TLS 1.3 tickets come with the first octets after the handshake.
  package var session: PeerSession? { SSL_get1_session(tls).map { PeerSession($0) } }

  package func write(_ octets: [UInt8]) { SSL_write(tls, octets, Int32(octets.count)) }

  /// Sends updates of keys, records without content (RFC 8446 section 4.6.3).
  package func updateKeys(_ count: Int) {
    for _ in 0..<count {
      SSL_key_update(tls, SSL_KEY_UPDATE_NOT_REQUESTED)
      guard SSL_do_handshake(tls) == 1 else { return }
    }
  }

  /// Says that nothing follows, by close_notify and FIN or by FIN alone.
  package func endInput(notifies: Bool) {
    if notifies { SSL_shutdown(tls) }
    shutdown(descriptor, Int32(SHUT_WR))
  }

  /// What comes until the server ends, and whether it did so by close_notify.
  package func readToEnd() -> (octets: [UInt8], isNotified: Bool) {
    var octets: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 16_384)
    while case let count = SSL_read(tls, &block, Int32(block.count)), count > 0 { octets += block[..<Int(count)] }
    return (octets, SSL_get_shutdown(tls) & SSL_RECEIVED_SHUTDOWN != 0)
  }
}
