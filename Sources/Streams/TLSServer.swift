// TLSServer.swift -- the server's side of TLS: a certificate with its key, and the protocols that are spoken over it.

import CTLS
import Glibc

/// Why a certificate chain and a private key cannot be used.
public struct TLSServerFailure: Error, Equatable, CustomStringConvertible {
  /// What is wrong with them.
  public let reason: String

  /// One human-readable line.
  public var description: String { "the server's certificate cannot be used: \(reason)" }
}

/// What all TLS connections of a server share: TLS 1.2 and later, no renegotiation, no early data, sessions only in tickets.
/// Loop thread only.
public final class TLSServer {
  private let context: OpaquePointer
  private let emptyRecordsIndex: Int32
  /// The protocols in their form on the wire (RFC 7301 section 3.1).
  private let protocols: [UInt8]

  /// - Parameters:
  ///   - certificateChain: the server's certificate, then the certificates up to that of the CA, as PEM.
  ///   - privateKey: the key of the first certificate, as PEM without a passphrase.
  ///   - protocols: protocols in order of preference (RFC 7301). The handshake with a client that offers only others fails; a
  ///     client that offers none is served.
  /// - Throws: `TLSServerFailure` if the texts are not PEM, or the key is not the certificate's.
  public init(
    certificateChain: [UInt8], privateKey: [UInt8], protocols: [String]
  ) throws(TLSServerFailure) {
    guard let context = ctls_server_context() else { throw TLSServerFailure(reason: "no TLS context") }
    self.context = context
    self.protocols = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    emptyRecordsIndex = ctls_bound_work(UnsafeMutableRawPointer(context))
    if !protocols.isEmpty {
      SSL_CTX_set_alpn_select_cb(context, selectProtocol, Unmanaged.passUnretained(self).toOpaque())
    }
    // What is wrong with a certificate here must not surface in a later handshake.
    defer { ERR_clear_error() }
    try useChain(certificateChain)
    try useKey(privateKey)
  }

  deinit { SSL_CTX_free(context) }

  /// Returns a connection over an accepted socket, before its handshake; nil without memory.
  public func connection(over descriptor: Int32) -> TLSConnection? {
    guard let connection = TLSConnection(of: context, self, countedAt: emptyRecordsIndex),
      SSL_set_fd(connection.ssl, descriptor) == 1
    else { return nil }
    SSL_set_accept_state(connection.ssl)
    return connection
  }

  private func useChain(_ pem: [UInt8]) throws(TLSServerFailure) {
    guard let source = BIO_new_mem_buf(pem, Int32(pem.count)) else { throw TLSServerFailure(reason: "no memory") }
    defer { BIO_free(source) }
    guard let first = PEM_read_bio_X509(source, nil, nil, nil) else { throw TLSServerFailure(reason: "no PEM text") }
    defer { X509_free(first) }
    guard SSL_CTX_use_certificate(context, first) == 1 else { throw TLSServerFailure(reason: "refused by OpenSSL") }
    while let next = PEM_read_bio_X509(source, nil, nil, nil) {
      if ctls_add_chain(context, next) != 1 { X509_free(next) }
    }
  }

  private func useKey(_ pem: [UInt8]) throws(TLSServerFailure) {
    guard let source = BIO_new_mem_buf(pem, Int32(pem.count)) else { throw TLSServerFailure(reason: "no memory") }
    defer { BIO_free(source) }
    guard let key = PEM_read_bio_PrivateKey(source, nil, nil, nil) else {
      throw TLSServerFailure(reason: "the key is no PEM text")
    }
    defer { EVP_PKEY_free(key) }
    guard SSL_CTX_use_PrivateKey(context, key) == 1, SSL_CTX_check_private_key(context) == 1 else {
      throw TLSServerFailure(reason: "the key is not the certificate's")
    }
  }

  /// Chooses among the client's offers, in the order of preference of the server.
  fileprivate func select(
    _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>, _ length: UnsafeMutablePointer<UInt8>,
    from offered: UnsafeBufferPointer<UInt8>
  ) -> Int32 {
    protocols.withUnsafeBufferPointer { own in
      var position = 0
      while position < own.count {
        let next = position + 1 + Int(own[position])
        var index = 0
        while index < offered.count {
          let end = index + 1 + Int(offered[index])
          guard end <= offered.count else { break }
          if own[position..<next].elementsEqual(offered[index..<end]) {
            // OpenSSL copies from the client's offer before the callback's caller returns.
            chosen.pointee = offered.baseAddress! + index + 1
            length.pointee = offered[index]
            return SSL_TLSEXT_ERR_OK
          }
          index = end
        }
        position = next
      }
      return SSL_TLSEXT_ERR_ALERT_FATAL
    }
  }
}

/// OpenSSL's callback for ALPN. The server outlives its connections.
private func selectProtocol(
  _: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ length: UnsafeMutablePointer<UInt8>?,
  _ offered: UnsafePointer<UInt8>?, _ count: UInt32, _ server: UnsafeMutableRawPointer?
) -> Int32 {
  Unmanaged<TLSServer>.fromOpaque(server!).takeUnretainedValue().select(
    chosen!, length!, from: UnsafeBufferPointer(start: offered, count: Int(count)))
}
