// StoreTLSContext.swift -- OpenSSL client context: trusted certificates, and the expected name of the store's
// certificate.

import CTLS
import Glibc

/// The TLS context that the connections of one client share. Loop thread only.
final class StoreTLSContext {
  private let context: OpaquePointer
  private let settings: StoreTLS
  private let authority: FileVersion?

  /// Identifies the content of a file, to notice that it was replaced.
  private struct FileVersion: Equatable {
    var device: UInt
    var inode: UInt
    var size: Int
    var seconds: Int
    var nanoseconds: Int

    init?(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0 else { return nil }
      device = UInt(status.st_dev)
      inode = UInt(status.st_ino)
      size = Int(status.st_size)
      (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
  }

  /// The bundle of trusted certificates, for distributions without a hashed folder that OpenSSL can search.
  private static let bundle = "/etc/ssl/certs/ca-certificates.crt"

  /// Reads the trusted certificates.
  ///
  /// - Throws: `StoreFault.tls` if `authorityFile` is unreadable or contains no certificate.
  init(_ settings: StoreTLS) throws(StoreFault) {
    self.settings = settings
    authority = settings.authorityFile.isEmpty ? nil : FileVersion(settings.authorityFile)
    guard let context = SSL_CTX_new(TLS_client_method()) else { throw .tls("no memory") }
    self.context = context
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
    let modes = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
    SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(modes), nil)
    ctls_bound_work(UnsafeMutableRawPointer(context))
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
    SSL_CTX_set_default_verify_paths(context)
    if !StoreTLSContext.hasHashedFolder { SSL_CTX_load_verify_locations(context, StoreTLSContext.bundle, nil) }
    // Intermediate certificates in the file are trusted as roots, as for the providers' connections.
    let flags = UInt(X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN)
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), flags)
    let isRead =
      settings.authorityFile.isEmpty || SSL_CTX_load_verify_locations(context, settings.authorityFile, nil) == 1
    // Remove errors about the system's certificates, so that a later handshake does not report them.
    ERR_clear_error()
    guard isRead else { throw .tls("\(settings.authorityFile): unreadable, or contains no PEM certificate") }
  }

  deinit { SSL_CTX_free(context) }

  /// Whether `authorityFile` is unchanged since it was read.
  var isCurrent: Bool { settings.authorityFile.isEmpty || FileVersion(settings.authorityFile) == authority }

  /// Returns a TLS connection over a connected socket, before its handshake. The caller frees it by `SSL_free`.
  ///
  /// - Throws: `StoreFault.tls` if memory is exhausted or the expected name is invalid.
  func connection(over descriptor: Int32) throws(StoreFault) -> OpaquePointer {
    guard let ssl = SSL_new(context) else { throw .tls("no memory") }
    guard expectName(ssl), SSL_set_fd(ssl, descriptor) == 1 else {
      SSL_free(ssl)
      throw .tls("'\(settings.name)' is not a valid host name or IP address")
    }
    SSL_set_connect_state(ssl)
    return ssl
  }

  /// The reason of a failed handshake.
  func failure(of ssl: OpaquePointer) -> StoreFault {
    let verification = SSL_get_verify_result(ssl)
    if verification == Int(X509_V_ERR_HOSTNAME_MISMATCH) || verification == Int(X509_V_ERR_IP_ADDRESS_MISMATCH) {
      return .tls("the certificate is not for '\(settings.name)'")
    }
    let words = String(cString: X509_verify_cert_error_string(verification))
    if StoreTLSContext.untrusted.contains(verification) {
      return .tls("the certificate's issuer is not trusted (\(words)); set fleet.ca_file")
    }
    if verification != Int(X509_V_OK) { return .tls("the certificate is not accepted: \(words)") }
    return .tls(StoreTLSContext.reason ?? "the store closed the connection during the handshake")
  }

  /// Verification results that mean that no trusted authority signed the certificate.
  private static let untrusted = [
    X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
    X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
    X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
  ].map { Int($0) }

  /// OpenSSL's text for the error that has just occurred; nil if the peer closed the connection. Clears the error
  /// queue.
  static var reason: String? {
    let code = ERR_get_error()
    ERR_clear_error()
    // With or without a close_notify alert.
    guard code != 0, ERR_GET_REASON(code) != SSL_R_UNEXPECTED_EOF_WHILE_READING else { return nil }
    guard let words = ERR_reason_error_string(code) else { return "TLS error \(code)" }
    return String(cString: words)
  }

  /// Sets the expected name and SNI; false if the name is invalid.
  private func expectName(_ ssl: OpaquePointer) -> Bool {
    // An empty name would disable the check.
    guard !settings.name.isEmpty else { return false }
    var octets = [UInt8](repeating: 0, count: 16)
    guard inet_pton(AF_INET, settings.name, &octets) != 1, inet_pton(AF_INET6, settings.name, &octets) != 1 else {
      return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), settings.name) == 1
    }
    SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    guard SSL_set1_host(ssl, settings.name) == 1 else { return false }
    // SSL_set_tlsext_host_name is a macro. It only reads the name.
    return settings.name.withCString { name in
      SSL_ctrl(
        ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), UnsafeMutableRawPointer(mutating: name)) == 1
    }
  }

  /// Whether OpenSSL's certificate folder contains hashed names such as `5ed36f99.0`.
  private static var hasHashedFolder: Bool {
    guard let folder = opendir(X509_get_default_cert_dir()) else { return false }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name.utf8.count == 10, name.hasSuffix(".0") { return true }
    }
    return false
  }
}
