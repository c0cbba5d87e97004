// TLSConnection.swift -- one TLS connection, of a client or of a server, and why it failed.

import CTLS
import Glibc

/// A TLS connection of either side. Loop thread only.
public final class TLSConnection {
  /// OpenSSL's `SSL`, owned by this object.
  let ssl: OpaquePointer
  /// The `TLSClient` or `TLSServer`, which OpenSSL's callbacks use.
  private let owner: AnyObject
  private let emptyRecordsIndex: Int32

  /// Nil without memory.
  ///
  /// - Parameters:
  ///   - context: the owner's.
  ///   - emptyRecordsIndex: where OpenSSL has the count of records without content.
  init?(of context: OpaquePointer, _ owner: AnyObject, countedAt emptyRecordsIndex: Int32) {
    guard let ssl = SSL_new(context) else { return nil }
    self.ssl = ssl
    self.owner = owner
    self.emptyRecordsIndex = emptyRecordsIndex
  }

  deinit { SSL_free(ssl) }

  /// The number of records in a row that have brought no content.
  var emptyRecords: Int { Int(bitPattern: SSL_get_ex_data(ssl, emptyRecordsIndex)) }

  /// The protocol that both sides agreed on in the handshake (RFC 7301); empty for none.
  public var chosenProtocol: String {
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &length)
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(length)), as: UTF8.self)
  }

  /// The name of the server that the client has sent (SNI); nil for none.
  public var serverName: String? { SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) } }

  /// Whether the handshake has resumed an earlier session.
  public var isResumed: Bool { SSL_session_reused(ssl) == 1 }

  /// Whether the peer has sent anything.
  public var hasHeard: Bool { BIO_number_read(SSL_get_rbio(ssl)) > 0 }

  /// The SHA-256 digest of the public key in the peer's certificate, in base64; nil without a certificate.
  public var keyDigest: String? {
    var digest = [UInt8](repeating: 0, count: 32)
    guard ctls_key_digest(ssl, &digest) == 1 else { return nil }
    // 44 digits of base64 and a zero octet.
    var text = [UInt8](repeating: 0, count: 45)
    EVP_EncodeBlock(&text, digest, 32)
    return String(decoding: text.dropLast(), as: UTF8.self)
  }
}

/// Why TLS has failed.
public enum TLSFailure: Error, Hashable, Sendable {
  /// The certificate is for another name.
  case otherName
  /// The certificate is not accepted, for a reason in OpenSSL's words.
  ///
  /// - Parameter isUntrusted: whether no trusted authority has signed it.
  case certificate(reason: String, isUntrusted: Bool)
  /// An error of OpenSSL's, by its code.
  case error(UInt)
  /// The peer has closed the connection.
  case closed

  /// Verification results that mean that no trusted authority has signed the certificate.
  private static let untrusted = [
    X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
    X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
    X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
  ].map { Int($0) }

  /// Explains a handshake that has failed, and clears OpenSSL's errors.
  ///
  /// - Parameter status: `SSL_get_error`'s.
  init(handshake tls: TLSConnection, status: Int32) {
    defer { ERR_clear_error() }
    let result = SSL_get_verify_result(tls.ssl)
    switch result {
    case Int(X509_V_OK): self.init(status: status)
    case Int(X509_V_ERR_HOSTNAME_MISMATCH), Int(X509_V_ERR_IP_ADDRESS_MISMATCH): self = .otherName
    default:
      let reason = String(cString: X509_verify_cert_error_string(result))
      self = .certificate(reason: reason, isUntrusted: TLSFailure.untrusted.contains(result))
    }
  }

  /// The error that has just occurred. Clears OpenSSL's errors.
  ///
  /// - Parameter status: `SSL_get_error`'s.
  init(status: Int32) {
    let code = ERR_get_error()
    ERR_clear_error()
    self = status == SSL_ERROR_SSL && code != 0 ? .error(code) : .closed
  }

  /// Whether the peer has closed the connection, with or without a close_notify alert.
  public var isClosed: Bool {
    switch self {
    case .closed: true
    case .error(let code): ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING
    case .otherName, .certificate: false
    }
  }

  /// OpenSSL's words for an error.
  public static func reason(of code: UInt) -> String {
    ERR_reason_error_string(code).map { String(cString: $0) } ?? "TLS error \(code)"
  }

  /// OpenSSL's line for an error, with its code and library.
  public static func text(of code: UInt) -> String {
    var text = [CChar](repeating: 0, count: 256)
    ERR_error_string_n(code, &text, text.count)
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
  }
}
