// TLSContext.swift -- TLS for the connections that libcurl does not open: trust, pins, sessions to resume.

import CHTTP2
import CTLS
import EventLoop
import Glibc

/// What all TLS connections to one server share. Loop thread only.
final class TLSContext {
  private let context: OpaquePointer
  /// Where OpenSSL has the count of records without content.
  private let emptyRecordsIndex: Int32
  private let server: HTTPServerAddress
  private let clock: CertificateClock?
  /// SHA-256 digests of the keys that the server may have, in base64 as in the configuration; empty for any.
  private let pins: [String]
  /// The newest session that can be resumed, owned; nil before the first one.
  private var session: OpaquePointer?

  /// Protocols that are offered, in order of preference (RFC 7301).
  private static let protocols = Array("\u{2}h2\u{8}http/1.1".utf8)

  init(_ server: HTTPServerAddress, _ options: HTTPClientOptions, _ trust: TrustStore) throws(HTTPSetupError) {
    guard let context = chttp2_context(UnsafeMutableRawPointer(trust.store)) else {
      throw HTTPSetupError(description: "no memory for TLS")
    }
    self.context = context
    self.server = server
    clock = options.certificateClock
    pins = options.pins
    // Also no renegotiation, which HTTP/2 forbids (RFC 9113 section 9.2.1): a write never waits for octets to read.
    emptyRecordsIndex = ctls_bound_work(UnsafeMutableRawPointer(context))
    SSL_CTX_set_alpn_protos(context, Self.protocols, UInt32(Self.protocols.count))
    SSL_CTX_sess_set_new_cb(context, sessionWasMade)
  }

  deinit {
    SSL_SESSION_free(session)
    SSL_CTX_free(context)
  }

  /// Returns a TLS connection over a socket that is connected, before its handshake; nil without memory. The caller frees
  /// it, before this context is released.
  func connection(over descriptor: Int32) -> OpaquePointer? {
    guard let ssl = SSL_new(context) else { return nil }
    chttp2_set_owner(ssl, Unmanaged.passUnretained(self).toOpaque())
    let isAddress = HTTPServerAddress.family(of: server.name) != nil
    guard chttp2_expect_host(ssl, server.name, isAddress ? 1 : 0) == 1, SSL_set_fd(ssl, descriptor) == 1 else {
      SSL_free(ssl)
      return nil
    }
    if let time = clock?.checkTime(now: .now) { chttp2_check_at(ssl, time) }
    if let session { SSL_set_session(ssl, session) }
    SSL_set_connect_state(ssl)
    return ssl
  }

  /// How many records in a row have brought no content.
  func emptyRecords(_ ssl: OpaquePointer) -> Int { Int(bitPattern: SSL_get_ex_data(ssl, emptyRecordsIndex)) }

  /// Whether both ends agreed on HTTP/2 during the handshake.
  func isHTTP2(_ ssl: OpaquePointer) -> Bool {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &length)
    return UnsafeBufferPointer(start: name, count: Int(length)).elementsEqual("h2".utf8)
  }

  /// Whether the server's key is one of the pins, or there are none.
  func fitsPins(_ ssl: OpaquePointer) -> Bool {
    guard !pins.isEmpty else { return true }
    var digest = [UInt8](repeating: 0, count: 32)
    guard chttp2_key_digest(ssl, &digest) == 1 else { return false }
    // 44 digits of base64 and a zero octet.
    var text = [UInt8](repeating: 0, count: 45)
    EVP_EncodeBlock(&text, digest, 32)
    return pins.contains("sha256//" + String(decoding: text.dropLast(), as: UTF8.self))
  }

  /// Explains a handshake that has failed, by what OpenSSL reports.
  func failure(of ssl: OpaquePointer, status: Int32) -> HTTPFailure {
    let verification = SSL_get_verify_result(ssl)
    if verification == Int(X509_V_ERR_HOSTNAME_MISMATCH) || verification == Int(X509_V_ERR_IP_ADDRESS_MISMATCH) {
      return HTTPFailure(.certificate, "no alternative certificate subject name matches '\(server.name)'")
    }
    if verification != Int(X509_V_OK) {
      let reason = String(cString: X509_verify_cert_error_string(verification))
      return explained(HTTPFailure(.certificate, "SSL certificate problem: \(reason)"))
    }
    let code = ERR_get_error()
    ERR_clear_error()
    guard status == SSL_ERROR_SSL, code != 0 else {
      return HTTPFailure(.tls, "the server closed the connection during the TLS handshake")
    }
    var text = [CChar](repeating: 0, count: 256)
    ERR_error_string_n(code, &text, text.count)
    return explained(HTTPFailure(.tls, String(decoding: text.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)))
  }

  private func explained(_ failure: HTTPFailure) -> HTTPFailure {
    var failure = failure
    failure.explain(scheme: .https, detail: failure.reason, isFirst: false)
    return failure
  }

  fileprivate func keep(_ fresh: OpaquePointer?) {
    SSL_SESSION_free(session)
    session = fresh
  }
}

/// OpenSSL's callback with a session that can be resumed, whose reference it gives away by 1.
private func sessionWasMade(_ ssl: OpaquePointer?, _ session: OpaquePointer?) -> Int32 {
  guard let owner = chttp2_owner(ssl) else { return 0 }
  Unmanaged<TLSContext>.fromOpaque(owner).takeUnretainedValue().keep(session)
  return 1
}
