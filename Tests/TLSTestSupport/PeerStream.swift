// PeerStream.swift -- the test server's end of a connection, in the clear or over TLS.

import CEvent
import CTLS
import Glibc

/// A certificate in OpenSSL's form.
package final class TLSContext: @unchecked Sendable {
  fileprivate let context: OpaquePointer

  /// - Parameters:
  ///   - certificate: in PEM.
  ///   - key: the certificate's, in PEM.
  ///   - highest: the highest version that is spoken, as it stands on the wire.
  ///   - groups: the groups for the key exchange, as OpenSSL names them; nil for its default.
  ///   - copies: how often the certificate is sent once more.
  ///   - resumes: whether a later connection can resume the session.
  package init(
    certificate pem: String, key keyPEM: String, http2: Bool = false, highest: Int = 0x0304, groups: String? = nil,
    copies: Int = 0, resumes: Bool = true
  ) {
    context = SSL_CTX_new(TLS_server_method())
    // Otherwise OpenSSL itself, and not the client, would refuse an old version.
    SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0")
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, 0x0301, nil)
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, highest, nil)
    let certificate = PEM_read_bio_X509(bio(pem), nil, nil, nil)
    let key = PEM_read_bio_PrivateKey(bio(keyPEM), nil, nil, nil)
    precondition(SSL_CTX_use_certificate(context, certificate) == 1, "no certificate")
    precondition(SSL_CTX_use_PrivateKey(context, key) == 1, "no key")
    if let groups {
      let set = groups.withCString {
        SSL_CTX_ctrl(context, SSL_CTRL_SET_GROUPS_LIST, 0, UnsafeMutableRawPointer(mutating: $0))
      }
      precondition(set == 1, "no such group")
    }
    for _ in 0..<copies { SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(certificate)) }
    // The server accepts early data: that a client sends none is the client's choice.
    SSL_CTX_set_max_early_data(context, 16_384)
    SSL_CTX_set_options(context, noAntiReplay)
    if !resumes { SSL_CTX_set_num_tickets(context, 0) }
    if http2 { SSL_CTX_set_alpn_select_cb(context, selectHTTP2, nil) }
  }

  deinit { SSL_CTX_free(context) }
}

/// `SSL_OP_NO_ANTI_REPLAY`, a macro with a cast: tickets then outlive the connection however it ended.
private let noAntiReplay: UInt64 = 1 << 24

private func bio(_ text: String) -> OpaquePointer {
  let bio = BIO_new(BIO_s_mem())!
  BIO_write(bio, text, Int32(text.utf8.count))
  return bio
}

private let http2Name: [UInt8] = [2, UInt8(ascii: "h"), UInt8(ascii: "2")]

private func selectHTTP2(
  _: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ length: UnsafeMutablePointer<UInt8>?,
  _ offered: UnsafePointer<UInt8>?, _ offeredLength: UInt32, _: UnsafeMutableRawPointer?
) -> Int32 {
  let list = UnsafeBufferPointer(start: offered, count: Int(offeredLength))
  for index in list.indices where list[index...].starts(with: http2Name) {
    chosen!.pointee = offered! + index + 1
    length!.pointee = 2
    return SSL_TLSEXT_ERR_OK
  }
  return SSL_TLSEXT_ERR_NOACK
}

/// TLS 1.3 early data, also called 0-RTT (RFC 8446 section 2.3).
package struct EarlyData: Sendable {
  /// Whether the session permits it, for the next connection that resumes it.
  package var isPermitted = false
  /// Whether the client sent or announced any.
  package var wasSent = false

  package init(isPermitted: Bool = false, wasSent: Bool = false) {
    self.isPermitted = isPermitted
    self.wasSent = wasSent
  }
}

/// Blocking reads and writes; nil or nothing once the connection has ended.
package final class PeerStream {
  package let descriptor: Int32
  private var tls: OpaquePointer?
  private var buffer: [UInt8] = []

  /// Nil where the handshake fails.
  package init?(_ descriptor: Int32, _ context: TLSContext?) {
    self.descriptor = descriptor
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    guard let context else { return }
    tls = SSL_new(context.context)
    SSL_set_fd(tls, descriptor)
    guard SSL_accept(tls) == 1 else { return nil }
  }

  deinit { if tls != nil { SSL_free(tls) } }

  /// Lets the end of the connection be a reset.
  package func resetsAtEnd() {
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
  }

  package var isHTTP2: Bool {
    guard let tls else { return false }
    var name: UnsafePointer<UInt8>?
    var length: UInt32 = 0
    SSL_get0_alpn_selected(tls, &name, &length)
    return length == 2
  }

  /// Whether the connection resumed the TLS session of an earlier one.
  package var isResumed: Bool { tls.map { SSL_session_reused($0) == 1 } ?? false }

  package var earlyData: EarlyData {
    guard let tls else { return EarlyData() }
    return EarlyData(
      isPermitted: SSL_SESSION_get_max_early_data(SSL_get_session(tls)) > 0,
      wasSent: SSL_get_early_data_status(tls) != SSL_EARLY_DATA_NOT_SENT)
  }

  /// Whether nothing came for so long.
  package func isQuiet(for milliseconds: Int32) -> Bool {
    guard buffer.isEmpty, tls.map({ SSL_pending($0) }) ?? 0 == 0 else { return false }
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, milliseconds) == 0
  }

  private var kept: [UInt8]?

  /// Keeps what is written until `uncork`.
  package func cork() { kept = [] }

  /// Writes what was kept, at once.
  package func uncork() {
    let octets = kept ?? []
    kept = nil
    write(octets)
  }

  package func write(_ octets: [UInt8]) {
    guard kept == nil else {
      kept! += octets
      return
    }
    var rest = octets[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { raw in
        tls == nil
          ? send(descriptor, raw.baseAddress, raw.count, Int32(MSG_NOSIGNAL))
          : Int(SSL_write(tls, raw.baseAddress, Int32(raw.count)))
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Sends at once what `body` writes with TLS.
  package func prepare(_ body: () -> Void) {
    let prepared = BIO_new(BIO_s_mem())
    SSL_set0_wbio(tls, prepared)
    body()
    var octets = [UInt8](repeating: 0, count: BIO_ctrl_pending(prepared))
    let length = BIO_read(prepared, &octets, Int32(octets.count))
    SSL_set0_wbio(tls, BIO_new_socket(descriptor, 0))
    var rest = octets[..<Int(length)]
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard sent > 0 else { return }
      rest = rest.dropFirst(sent)
    }
  }

  /// Says that nothing follows (close_notify, RFC 8446 section 6.1).
  package func sayGoodbye() { SSL_shutdown(tls) }

  /// Sends an update of keys (RFC 8446 section 4.6.3).
  package func updateKey(asksBack: Bool) {
    SSL_key_update(tls, asksBack ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED)
    SSL_do_handshake(tls)
  }

  /// Sends `count` messages without content, all at once: new keys or, in a version without those (RFC 5246 section
  /// 7.4.1.1), requests for a handshake, which the client refuses.
  package func writeEmptyRecords(_ count: Int) {
    prepare {
      for _ in 0..<count {
        guard SSL_version(tls) < 0x0304 else {
          updateKey(asksBack: false)
          continue
        }
        SSL_renegotiate(tls)
        SSL_do_handshake(tls)
      }
    }
  }

  /// What comes up to and with `end`.
  package func read(through end: [UInt8]) -> [UInt8]? {
    while true {
      if let start = buffer.indices.first(where: { buffer[$0...].starts(with: end) }) {
        return read(exactly: start + end.count)
      }
      if !fill() { return nil }
    }
  }

  package func read(exactly count: Int) -> [UInt8]? {
    while buffer.count < count { if !fill() { return nil } }
    defer { buffer.removeFirst(count) }
    return Array(buffer[..<count])
  }

  private func fill() -> Bool {
    var chunk = [UInt8](repeating: 0, count: 16_384)
    let count = tls == nil ? recv(descriptor, &chunk, chunk.count, 0) : Int(SSL_read(tls, &chunk, Int32(chunk.count)))
    guard count > 0 else { return false }
    buffer += chunk[..<count]
    return true
  }
}
