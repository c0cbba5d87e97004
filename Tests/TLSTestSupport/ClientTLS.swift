// ClientTLS.swift -- what clients of tests have in common: what they offer in a handshake, and what they learn by it.

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

/// A client's TLS connection over a socket, before or after its handshake. Checks no certificate.
package class ClientTLS {
  let tls: OpaquePointer
  private let context: OpaquePointer

  init(_ offer: TLSOffer, over descriptor: Int32) {
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
  }

  deinit {
    SSL_free(tls)
    SSL_CTX_free(context)
  }

  /// The protocol that the server has chosen; empty for none.
  package var chosenProtocol: String {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(tls, &name, &length)
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
  }

  /// The subject of the server's certificate, such as `/CN=dns.test`.
  package var subject: String {
    guard let certificate = SSL_get1_peer_certificate(tls) else { return "" }
    defer { X509_free(certificate) }
    var text = [CChar](repeating: 0, count: 256)
    X509_NAME_oneline(X509_get_subject_name(certificate), &text, Int32(text.count))
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Whether the server has resumed the session that was offered.
  package var isResumed: Bool { SSL_session_reused(tls) == 1 }

  /// The session; over TLS 1.3 it can be resumed only after the first octets of the server.
  package var session: TLSSession? { SSL_get1_session(tls).map { TLSSession($0) } }
}
