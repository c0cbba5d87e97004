// EncryptedMetrics.swift -- the samples of the encrypted listeners.

import Forwarder
import Frontend

extension Exposition {
  /// Writes the samples of connections, handshakes and the certificate.
  mutating func write(_ encrypted: EncryptedReport) {
    let totals = encrypted.totals
    gauge("httpdnsd_encrypted_connections", "Clients' connections to the encrypted listeners.", totals.open)
    counter("httpdnsd_encrypted_refused_total", "Connections that were closed before their TLS handshake, by reason.") {
      $0.add(by: "reason", EncryptedRefusal.allCases.map { ($0.word, totals[$0]) })
    }
    counter(
      "httpdnsd_encrypted_displaced_total", "Encrypted connections that were closed to make room for a new one.",
      totals.displaced)
    counter("httpdnsd_tls_handshakes_total", "TLS handshakes with clients, by result.") {
      $0.add(by: "result", HandshakeResult.allCases.map { ($0.word, totals[$0]) })
    }
    gauge(
      "httpdnsd_certificate_expiry_seconds", "Unix time at which the certificate in use ends; 0 without one.",
      encrypted.certificateEnd ?? 0)
  }
}
