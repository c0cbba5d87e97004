// TLSServerContext.swift -- a certificate chain and its private key for TLS connections.

import CTLS
import Glibc

/// OpenSSL's server context: TLS 1.2 and later, ALPN `http/1.1`. Owns the `SSL_CTX`.
public final class TLSServerContext {
  private let handle: OpaquePointer

  /// Creates a context from PEM text.
  ///
  /// - Parameters:
  ///   - certificateChain: the server's certificate, then the certificates up to that of the CA, as PEM.
  ///   - privateKey: the key of the first certificate, as PEM without a passphrase.
  /// - Throws: `HTTPServerError.unusableCertificate`.
  public init(certificateChain: [UInt8], privateKey: [UInt8]) throws(HTTPServerError) {
    guard let handle = SSL_CTX_new(TLS_server_method()) else { throw .unusableCertificate("no TLS context") }
    self.handle = handle
    SSL_CTX_ctrl(handle, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
    ctls_bound_work(UnsafeMutableRawPointer(handle))
    SSL_CTX_set_alpn_select_cb(handle, selectHTTP11, nil)
    try useChain(certificateChain)
    try useKey(privateKey)
  }

  deinit { SSL_CTX_free(handle) }

  /// Creates the state of a new connection; the caller owns it. Traps if memory is short.
  func makeConnection() -> OpaquePointer {
    guard let connection = SSL_new(handle) else { fatalError("no memory for a TLS connection") }
    return connection
  }

  private func useChain(_ pem: [UInt8]) throws(HTTPServerError) {
    guard let source = BIO_new_mem_buf(pem, Int32(pem.count)) else { throw .unusableCertificate("no memory") }
    defer { BIO_free(source) }
    guard let first = PEM_read_bio_X509(source, nil, nil, nil) else { throw .unusableCertificate("no PEM text") }
    defer { X509_free(first) }
    guard SSL_CTX_use_certificate(handle, first) == 1 else { throw .unusableCertificate("refused by OpenSSL") }
    while let next = PEM_read_bio_X509(source, nil, nil, nil) {
      // The context takes ownership of an extra certificate only if it accepts it.
      if SSL_CTX_ctrl(handle, SSL_CTRL_EXTRA_CHAIN_CERT, 0, UnsafeMutableRawPointer(next)) != 1 { X509_free(next) }
    }
    ERR_clear_error()  // the end of the text is reported as an error
  }

  private func useKey(_ pem: [UInt8]) throws(HTTPServerError) {
    guard let source = BIO_new_mem_buf(pem, Int32(pem.count)) else { throw .unusableCertificate("no memory") }
    defer { BIO_free(source) }
    guard let key = PEM_read_bio_PrivateKey(source, nil, nil, nil) else {
      throw .unusableCertificate("the key is no PEM text")
    }
    defer { EVP_PKEY_free(key) }
    guard SSL_CTX_use_PrivateKey(handle, key) == 1, SSL_CTX_check_private_key(handle) == 1 else {
      throw .unusableCertificate("the key is not the certificate's")
    }
  }
}

/// Selects `http/1.1` if the client offers it, and otherwise continues without ALPN (RFC 7301 section 3.2).
private func selectHTTP11(
  _: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ length: UnsafeMutablePointer<UInt8>?,
  _ offered: UnsafePointer<UInt8>?, _ offeredLength: UInt32, _: UnsafeMutableRawPointer?
) -> Int32 {
  let wanted: StaticString = "http/1.1"
  let end = Int(offeredLength)
  var position = 0
  while let offered, position < end {
    let size = Int(offered[position])
    guard position + 1 + size <= end else { break }
    if size == wanted.utf8CodeUnitCount, memcmp(offered + position + 1, wanted.utf8Start, size) == 0 {
      chosen?.pointee = offered + position + 1
      length?.pointee = UInt8(size)
      return SSL_TLSEXT_ERR_OK
    }
    position += 1 + size
  }
  return SSL_TLSEXT_ERR_NOACK
}
