// TrustStore.swift -- the trusted certificates, read once for all origins and generations.
//
// libcurl would use a separate store per multi handle and read the bundle for every server and generation.

import CCurl
import Glibc
import Synchronization

/// OpenSSL's store of trusted certificates. OpenSSL synchronizes verification from several contexts.
final class TrustStore: @unchecked Sendable {
  /// OpenSSL's `X509_STORE`, owned by this object; contexts hold references of their own.
  let store: OpaquePointer

  private struct Key: Hashable {
    var path: String
    var modified: Int
    var size: Int
  }

  private static let stores = Mutex<[Key: TrustStore]>([:])

  /// Returns the system's certificates and those of a file; cached if the file has not changed since it was read.
  ///
  /// - Parameter extra: a PEM file, or empty for none.
  /// - Throws: `HTTPSetupError` if the file is unreadable or has no certificate.
  static func load(extra: String) throws(HTTPSetupError) -> TrustStore {
    var status = stat()
    guard extra.isEmpty || stat(extra, &status) == 0 else {
      throw HTTPSetupError(description: "certificates \(extra): \(String(cString: strerror(errno)))")
    }
    let key = Key(
      path: extra, modified: status.st_mtim.tv_sec &* 1_000_000_000 &+ status.st_mtim.tv_nsec,
      size: Int(status.st_size))
    if let known = stores.withLock({ $0[key] }) { return known }
    let fresh = try TrustStore(extra: extra)
    stores.withLock { stores in
      stores = stores.filter { $0.key.path != extra }
      stores[key] = fresh
    }
    return fresh
  }

  private init(extra: String) throws(HTTPSetupError) {
    guard let store = X509_STORE_new() else { throw HTTPSetupError(description: "no memory for certificates") }
    self.store = store
    // An intermediate certificate in a bundle is trusted, as with libcurl.
    X509_STORE_set_flags(store, UInt(X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN))
    X509_STORE_set_default_paths(store)
    // OpenSSL reads a hashed directory on demand, one certificate at a time. Without one, load the bundle.
    if !Self.hasHashedDirectory, let bundle = Self.systemBundle { _ = ccurl_store_load_file(store, bundle) }
    guard extra.isEmpty || ccurl_store_load_file(store, extra) == 1 else {
      throw HTTPSetupError(description: "certificates \(extra): no certificate (PEM) in it")
    }
    // Errors in the system's certificates must not surface in a later handshake.
    ERR_clear_error()
  }

  deinit { X509_STORE_free(store) }

  /// Whether OpenSSL's directory has names such as `5ed36f99.0`.
  private static var hasHashedDirectory: Bool {
    guard let directory = opendir(X509_get_default_cert_dir()) else { return false }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name.utf8.count == 10, name.hasSuffix(".0") { return true }
    }
    return false
  }

  /// The bundle that libcurl was built to read.
  private static var systemBundle: String? {
    guard let path = ccurl_bundle_path() else { return nil }
    return String(cString: path)
  }
}
