// PeerClient.swift -- a client's end of a TLS connection, as hostile as a test wants it.

import CTLS
import Glibc

/// Blocking; checks no certificate.
package final class PeerClient: ClientTLS {
  private let descriptor: Int32

  /// Nil where the handshake fails. Owns the socket.
  ///
  /// - Parameters:
  ///   - version: the only version that is spoken, as it stands on the wire.
  ///   - protocols: what is offered (RFC 7301); empty for no offer.
  ///   - serverName: the name that is sent (SNI); nil for none.
  ///   - session: of an earlier connection, to be resumed.
  package init?(
    _ descriptor: Int32, version: Int = 0x0304, protocols: [String] = [], serverName: String? = nil,
    resuming session: TLSSession? = nil
  ) {
    self.descriptor = descriptor
    super.init(
      TLSOffer(serverName: serverName, versions: version...version, protocols: protocols, session: session),
      over: descriptor)
    guard SSL_connect(tls) == 1 else { return nil }
  }

  deinit { close(descriptor) }

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
