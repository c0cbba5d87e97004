// TrustStore.swift -- the trusted certificates, read once for all connections that trust the same.
//
// libcurl would use a separate store per multi handle and read the bundle for every server and generation.

import CTLS
import Files
import Glibc
import Synchronization

/// Why there are no trusted certificates.
public enum TrustFailure: Error, Equatable {
  case noMemory
  /// The `errno` of a file that cannot be read.
  case unreadable(Int32)
  /// The file contains no certificate in PEM.
  case noCertificate
}

/// OpenSSL's store of trusted certificates. OpenSSL synchronizes verification from several contexts.
public final class TrustStore: @unchecked Sendable {
  /// OpenSSL's `X509_STORE`, owned by this object; contexts hold references of their own.
  public let store: OpaquePointer

  /// A file with the content that it has now.
  private struct Key: Hashable {
    var path: String
    var device: UInt
    var inode: UInt
    var modified: Int
    var size: Int
  }

  /// The bundles of distributions without a folder that OpenSSL searches: Debian's, Alpine's and Arch's; Fedora's; SUSE's.
  private static let bundles = [
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
  ]

  private static let stores = Mutex<[Key: TrustStore]>([:])

  /// Returns the system's certificates and those of a file; cached if the file has not changed since it was read.
  ///
  /// - Parameter extra: a PEM file, or empty for none.
  public static func load(extra: String) throws(TrustFailure) -> TrustStore {
    var status = stat()
    guard extra.isEmpty || stat(extra, &status) == 0 else { throw .unreadable(errno) }
    let key = Key(
      path: extra, device: UInt(status.st_dev), inode: UInt(status.st_ino),
      modified: status.st_mtim.tv_sec &* 1_000_000_000 &+ status.st_mtim.tv_nsec, size: Int(status.st_size))
    if let known = stores.withLock({ $0[key] }) { return known }
    let fresh = try TrustStore(extra: extra)
    stores.withLock { stores in
      stores = stores.filter { $0.key.path != extra }
      stores[key] = fresh
    }
    return fresh
  }

  private init(extra: String) throws(TrustFailure) {
    // What is wrong with a certificate here must not surface in a later handshake.
    defer { ERR_clear_error() }
    guard let store = X509_STORE_new() else { throw .noMemory }
    self.store = store
    // An intermediate certificate in a bundle is trusted.
    X509_STORE_set_flags(store, UInt(X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN))
    X509_STORE_set_default_paths(store)
    // OpenSSL reads a hashed directory on demand, one certificate at a time. Without one, load the bundle.
    if !Self.hasHashedDirectory, let bundle = Self.bundles.first(where: { access($0, R_OK) == 0 }) {
      X509_STORE_load_locations(store, bundle, nil)
    }
    guard extra.isEmpty || X509_STORE_load_locations(store, extra, nil) == 1 else { throw .noCertificate }
  }

  deinit { X509_STORE_free(store) }

  /// Whether OpenSSL's directory has names such as `5ed36f99.0`.
  private static var hasHashedDirectory: Bool {
    let names = Folder.names(in: String(cString: X509_get_default_cert_dir())) ?? []
    return names.contains { $0.utf8.count == 10 && $0.hasSuffix(".0") }
  }
}
