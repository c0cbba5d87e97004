// TLSClient.swift -- the client's side of TLS: trusted certificates, the expected name, sessions to resume.

import CTLS
import Glibc

/// What all TLS connections to one server share. Loop thread only.
public final class TLSClient {
  /// The name or address that the server's certificate must have. A name is sent as SNI.
  public let name: String
  public let trust: TrustStore
  private let context: OpaquePointer
  /// Where OpenSSL has the count of records without content.
  private let emptyRecordsIndex: Int32
  /// The newest session that can be resumed, owned; nil before the first one.
  private var session: OpaquePointer?

  /// Nil without memory.
  ///
  /// - Parameters:
  ///   - protocols: protocols that are offered, in order of preference (RFC 7301); empty for none.
  ///   - resumes: whether a connection resumes the session of an earlier one, without a certificate.
  public init?(_ name: String, _ trust: TrustStore, protocols: [String] = [], resumes: Bool) {
    guard let context = ctls_client_context(UnsafeMutableRawPointer(trust.store)) else { return nil }
    self.context = context
    self.name = name
    self.trust = trust
    // Also no renegotiation: a write never waits for octets to read.
    emptyRecordsIndex = ctls_bound_work(UnsafeMutableRawPointer(context))
    let offer = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    if !offer.isEmpty { SSL_CTX_set_alpn_protos(context, offer, UInt32(offer.count)) }
    if resumes { SSL_CTX_sess_set_new_cb(context, sessionWasMade) }
  }

  deinit {
    SSL_SESSION_free(session)
    SSL_CTX_free(context)
  }

  /// Returns a connection over a connected socket, before its handshake; nil without memory, or if the name is not valid.
  ///
  /// - Parameter time: seconds since 1970 at which certificates must be valid; nil for the machine's clock.
  public func connection(over descriptor: Int32, checkedAt time: Int64? = nil) -> TLSConnection? {
    guard let connection = TLSConnection(of: context, self, countedAt: emptyRecordsIndex) else { return nil }
    let ssl = connection.ssl
    ctls_set_owner(ssl, Unmanaged.passUnretained(self).toOpaque())
    // An empty name would disable the check.
    guard !name.isEmpty, ctls_expect_host(ssl, name, isAddress ? 1 : 0) == 1, SSL_set_fd(ssl, descriptor) == 1 else {
      return nil
    }
    if let time { ctls_check_at(ssl, time) }
    if let session { SSL_set_session(ssl, session) }
    SSL_set_connect_state(ssl)
    return connection
  }

  private var isAddress: Bool {
    var octets = [UInt8](repeating: 0, count: 16)
    return inet_pton(AF_INET, name, &octets) == 1 || inet_pton(AF_INET6, name, &octets) == 1
  }

  fileprivate func keep(_ fresh: OpaquePointer?) {
    SSL_SESSION_free(session)
    session = fresh
  }
}

/// OpenSSL's callback with a session that can be resumed. Returns 1: the client owns the reference from now on.
private func sessionWasMade(_ ssl: OpaquePointer?, _ session: OpaquePointer?) -> Int32 {
  guard let owner = ctls_owner(ssl) else { return 0 }
  Unmanaged<TLSClient>.fromOpaque(owner).takeUnretainedValue().keep(session)
  return 1
}
