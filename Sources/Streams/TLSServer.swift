// TLSServer.swift -- the server's side of TLS: a certificate with its key, and the protocols that are spoken over it.

import CTLS
import EventLoop
import Glibc

/// What all TLS connections of a server share: TLS 1.2 and later, no renegotiation, no early data, sessions only in tickets.
/// Loop thread only.
public final class TLSServer {
  /// Whether the server goes on with a client that names this server (SNI), or none: otherwise the handshake ends with the
  /// alert `unrecognized_name`, before a certificate is sent.
  public var accepts: (_ serverName: String?) -> Bool = { _ in true }
  /// Of the present certificate. Connections hold theirs.
  private var context: OpaquePointer
  private let emptyRecordsIndex: Int32
  /// The protocols in their form on the wire (RFC 7301 section 3.1).
  private let protocols: [UInt8]
  private(set) var keys = TicketKeys()
  private let loop: any Loop
  /// Ends keys in their time, also if no client comes. Set only while there are keys.
  private let keyTimer = OwnedTimer()

  /// Nil without memory.
  ///
  /// - Parameters:
  ///   - protocols: protocols in order of preference (RFC 7301). The handshake with a client that offers only others fails; a
  ///     client that offers none is served.
  ///   - loop: that of the connections.
  public init?(_ pair: CertificatePair, protocols: [String], on loop: any Loop) {
    guard let (context, index) = TLSServer.makeContext(pair) else { return nil }
    self.context = context
    emptyRecordsIndex = index
    self.loop = loop
    self.protocols = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    prepare(context)
  }

  deinit { SSL_CTX_free(context) }

  /// Uses another certificate for handshakes from now on; connections that exist keep theirs. False without memory.
  public func use(_ pair: CertificatePair) -> Bool {
    // A context of its own: in the one before, a certificate with another kind of key would stay.
    guard let (context, _) = TLSServer.makeContext(pair) else { return false }
    prepare(context)
    SSL_CTX_free(self.context)
    self.context = context
    return true
  }

  /// A context with a certificate, and where OpenSSL counts records without content; nil without memory.
  private static func makeContext(_ pair: CertificatePair) -> (context: OpaquePointer, emptyRecordsIndex: Int32)? {
    guard let context = ctls_server_context() else { return nil }
    let index = ctls_bound_work(UnsafeMutableRawPointer(context))
    SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20")
    guard pair.use(in: context) else {
      SSL_CTX_free(context)
      return nil
    }
    return (context, index)
  }

  /// Sets the callbacks, which find the server by its context.
  private func prepare(_ context: OpaquePointer) {
    ctls_set_context_owner(context, Unmanaged.passUnretained(self).toOpaque())
    if !protocols.isEmpty { SSL_CTX_set_alpn_select_cb(context, selectProtocol, nil) }
    ctls_on_server_name(context, judgeServerName)
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context, useTicketKey)
  }

  /// Returns a connection over an accepted socket, before its handshake; nil without memory.
  public func connection(over descriptor: Int32) -> TLSConnection? {
    guard let connection = TLSConnection(of: context, self, countedAt: emptyRecordsIndex),
      SSL_set_fd(connection.ssl, descriptor) == 1
    else { return nil }
    SSL_set_accept_state(connection.ssl)
    return connection
  }

  /// The server of a connection, which holds it.
  fileprivate static func of(_ ssl: OpaquePointer?) -> TLSServer {
    Unmanaged<TLSServer>.fromOpaque(ctls_context_owner(ssl)).takeUnretainedValue()
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

  /// Encrypts or decrypts a ticket; returns what OpenSSL's callback returns.
  fileprivate func ticket(
    _ name: UnsafeMutablePointer<UInt8>, _ vector: UnsafeMutablePointer<UInt8>, _ cipher: OpaquePointer?,
    _ mac: OpaquePointer?, encrypts: Bool
  ) -> Int32 {
    if encrypts {
      guard let key = keys.forNewTicket(at: loop.now) else { return -1 }
      awaitEndOfKey()
      withUnsafeBytes(of: &key.octets.name) {
        name.update(from: $0.baseAddress!.assumingMemoryBound(to: UInt8.self), count: $0.count)
      }
      return ctls_use_ticket_key(&key.octets, 1, vector, cipher, mac) == 1 ? 1 : -1
    }
    switch keys.find(name, at: loop.now) {
    case nil: return 0
    case .current(let key): return ctls_use_ticket_key(&key.octets, 0, vector, cipher, mac) == 1 ? 1 : -1
    // 2: with a new ticket for the client.
    case .previous(let key): return ctls_use_ticket_key(&key.octets, 0, vector, cipher, mac) == 1 ? 2 : -1
    }
  }

  private func awaitEndOfKey() {
    guard !keyTimer.isSet, let end = keys.nextEnd else { return }
    keyTimer.set(at: end, on: loop, for: self) {
      $0.keys.endOld(at: $0.loop.now)
      $0.awaitEndOfKey()
    }
  }
}

/// OpenSSL's callback for ALPN. The server outlives its connections.
private func selectProtocol(
  ssl: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ length: UnsafeMutablePointer<UInt8>?,
  _ offered: UnsafePointer<UInt8>?, _ count: UInt32, _: UnsafeMutableRawPointer?
) -> Int32 {
  TLSServer.of(ssl).select(chosen!, length!, from: UnsafeBufferPointer(start: offered, count: Int(count)))
}

/// OpenSSL's callback for the name of the server.
private func judgeServerName(
  ssl: OpaquePointer?, _ alert: UnsafeMutablePointer<Int32>?, _: UnsafeMutableRawPointer?
) -> Int32 {
  let name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
  guard !TLSServer.of(ssl).accepts(name) else { return SSL_TLSEXT_ERR_OK }
  alert?.pointee = SSL_AD_UNRECOGNIZED_NAME
  return SSL_TLSEXT_ERR_ALERT_FATAL
}

/// OpenSSL's callback for tickets.
private func useTicketKey(
  ssl: OpaquePointer?, _ name: UnsafeMutablePointer<UInt8>?, _ vector: UnsafeMutablePointer<UInt8>?,
  _ cipher: OpaquePointer?, _ mac: OpaquePointer?, _ encrypts: Int32
) -> Int32 { TLSServer.of(ssl).ticket(name!, vector!, cipher, mac, encrypts: encrypts == 1) }
