// CertificatePair.swift -- a certificate chain and its private key from two PEM files, judged before a client meets them.
//
// Phones say only "couldn't connect", whatever is wrong with a certificate. So what strict clients refuse is found when the
// files are read: a key of another certificate, a chain out of order, a certificate without the name. An expired certificate is
// no fault of the files: who renews it may need this daemon to resolve names. The caller decides (`state`).

import CTLS
import Files
import Glibc

/// A chain of certificates and the key of its first one, parsed once for any number of contexts. Immutable; OpenSSL counts
/// references atomically, so that any thread may use it.
public final class CertificatePair: Sendable {
  /// The time of the first certificate's life that is left.
  public enum State: Hashable, Sendable {
    /// Its first second has not come: a clock is wrong.
    case notYetValid
    case valid
    /// Less than a sixth of the lifetime is left, so that its renewal has failed: clients of ACME renew earlier.
    case endsSoon
    case expired
  }

  /// The largest accepted file, in octets.
  public static let maximumSize = 1 << 20

  /// The first second of the first certificate, in seconds since 1970.
  public let begin: Int64
  /// The last second of the first certificate, in seconds since 1970.
  public let end: Int64
  /// The permission bits of a key file that other users may read, and that is accepted because a container engine or systemd
  /// provides it; nil for any other, and without a file.
  public let exposedMode: mode_t?
  /// The certificates, `X509`; the first one is the server's. Owned.
  nonisolated(unsafe) private let chain: [OpaquePointer]
  /// The key, `EVP_PKEY`. Owned.
  nonisolated(unsafe) private let key: OpaquePointer

  /// Reads and judges two PEM files. Blocks, so do not call it on a loop.
  ///
  /// - Parameters:
  ///   - name: a name that the certificate must have; nil for any.
  ///   - credentials: systemd's folder of credentials, `$CREDENTIALS_DIRECTORY`.
  public convenience init(
    certificateFile: String, keyFile: String, name: String?, credentials: String?
  ) throws(CertificateFault) {
    let chain = try CertificatePair.read(certificateFile, of: .certificate)
    let key = try CertificatePair.read(keyFile, of: .key)
    // Its group may read it, and no user more: an ACME client's hook gives it the group of the service.
    let isExposed = key.mode & 0o037 != 0
    guard !isExposed || key.isProvided(credentials: credentials) else {
      throw CertificateFault(.key, .exposed(mode: key.mode))
    }
    try self.init(
      certificates: chain.octets, key: key.octets, name: name, exposedMode: isExposed ? key.mode : nil)
  }

  /// Parses and judges the octets of two PEM files.
  ///
  /// - Parameter name: a name that the certificate must have; nil for any.
  public convenience init(certificates: [UInt8], key: [UInt8], name: String?) throws(CertificateFault) {
    try self.init(certificates: certificates, key: key, name: name, exposedMode: nil)
  }

  private init(
    certificates: [UInt8], key: [UInt8], name: String?, exposedMode: mode_t?
  ) throws(CertificateFault) {
    // What is wrong here must not surface in a handshake.
    defer { ERR_clear_error() }
    chain = try CertificatePair.parse(certificates)
    do { self.key = try CertificatePair.parse(key: key) } catch {
      for certificate in chain { X509_free(certificate) }
      throw error
    }
    begin = CertificatePair.seconds(X509_get0_notBefore(chain[0]))
    end = CertificatePair.seconds(X509_get0_notAfter(chain[0]))
    self.exposedMode = exposedMode
    // From here on `deinit` frees both, also if the judgement throws.
    try judge(name)
  }

  deinit {
    for certificate in chain { X509_free(certificate) }
    EVP_PKEY_free(key)
  }

  /// How much of the lifetime is left.
  ///
  /// - Parameter now: seconds since 1970.
  public func state(at now: Int64) -> State {
    if now < begin { return .notYetValid }
    if now > end { return .expired }
    return (end - now) < (end - begin) / 6 ? .endsSoon : .valid
  }

  /// Whether the certificate is for a name, as clients compare them: only alternative names count (RFC 9525 section 6.3), and a
  /// wildcard stands for one whole label.
  public func isFor(name: String) -> Bool {
    let flags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
    return X509_check_host(chain[0], name, name.utf8.count, flags, nil) == 1
  }

  /// Whether the certificate is for an IPv4 or IPv6 address, given as text.
  public func isFor(address: String) -> Bool { X509_check_ip_asc(chain[0], address, 0) == 1 }

  /// Whether it has the same certificates as another one, and so the same key.
  public func isEqual(_ other: CertificatePair?) -> Bool {
    guard let other, other.chain.count == chain.count else { return false }
    return zip(chain, other.chain).allSatisfy { X509_cmp($0, $1) == 0 }
  }

  /// Makes a context use this pair for handshakes from now on; false without memory. Connections that exist keep what they have.
  ///
  /// - Parameter context: `SSL_CTX`. It takes references of its own.
  public func use(in context: OpaquePointer) -> Bool {
    defer { ERR_clear_error() }
    guard let others = OPENSSL_sk_new_reserve(nil, Int32(chain.count)) else { return false }
    defer { OPENSSL_sk_free(others) }
    for certificate in chain.dropFirst() { OPENSSL_sk_push(others, UnsafeRawPointer(certificate)) }
    return SSL_CTX_use_cert_and_key(context, chain[0], key, others, 1) == 1
  }

  private func judge(_ name: String?) throws(CertificateFault) {
    guard X509_check_private_key(chain[0], key) == 1 else { throw CertificateFault(.key, .otherPair) }
    for position in chain.indices.dropFirst() where X509_check_issued(chain[position], chain[position - 1]) != X509_V_OK
    {
      throw CertificateFault(.certificate, .order(position: position + 1))
    }
    if let name, !isFor(name: name) { throw CertificateFault(.certificate, .lacksName(name)) }
    // OpenSSL has rules of its own, such as the least size of a key.
    guard let context = SSL_CTX_new(TLS_server_method()) else { return }
    defer { SSL_CTX_free(context) }
    ctls_bound_work(UnsafeMutableRawPointer(context))
    guard use(in: context) else { throw CertificateFault(.certificate, .refused) }
  }

  private static func read(_ path: String, of file: CertificateFault.File) throws(CertificateFault) -> RegularFile {
    do throws(FileFault) { return try RegularFile(path, limit: maximumSize) } catch {
      throw CertificateFault(file, .unreadable(error))
    }
  }

  private static func parse(_ pem: [UInt8]) throws(CertificateFault) -> [OpaquePointer] {
    guard let source = BIO_new_mem_buf(pem, Int32(pem.count)) else { throw CertificateFault(.certificate, .notPEM) }
    defer { BIO_free(source) }
    var chain: [OpaquePointer] = []
    while let next = PEM_read_bio_X509(source, nil, nil, nil) { chain.append(next) }
    // The end of the text is reported as a missing first line, anything else as what it is.
    guard !chain.isEmpty, ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE else {
      for certificate in chain { X509_free(certificate) }
      throw CertificateFault(.certificate, .notPEM)
    }
    return chain
  }

  private static func parse(key pem: [UInt8]) throws(CertificateFault) -> OpaquePointer {
    guard let source = BIO_new_mem_buf(pem, Int32(pem.count)) else { throw CertificateFault(.key, .notPEM) }
    defer { BIO_free(source) }
    // Without a callback OpenSSL asks at the terminal for a passphrase.
    var wasAsked: Int32 = 0
    guard let key = PEM_read_bio_PrivateKey(source, nil, refusePassphrase, &wasAsked) else {
      throw CertificateFault(.key, wasAsked == 1 ? .hasPassphrase : .notPEM)
    }
    return key
  }

  private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64 {
    var fields = tm()
    // A malformed time counts as one in 1970.
    guard let time, ASN1_TIME_to_tm(time, &fields) == 1 else { return 0 }
    return Int64(timegm(&fields))
  }
}

/// OpenSSL's callback for the passphrase of a key: there is none. Sets the flag that `asked` points to.
private func refusePassphrase(
  _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _ asked: UnsafeMutableRawPointer?
) -> Int32 {
  asked?.storeBytes(of: 1, as: Int32.self)
  return -1
}

/// Why a certificate and its key cannot be used. Never shows anything of the key.
public struct CertificateFault: Error, Hashable, Sendable {
  public enum File: Hashable, Sendable { case certificate, key }

  /// What is wrong with it.
  public enum Reason: Hashable, Sendable {
    case unreadable(FileFault)
    /// Other users may access the file, whose permission bits are these.
    case exposed(mode: mode_t)
    /// There is no certificate, or no key, or a broken one.
    case notPEM
    case hasPassphrase
    /// The key is not that of the first certificate.
    case otherPair
    /// The certificate at this position, counted from 1, has not signed the one before it.
    case order(position: Int)
    case lacksName(String)
    /// OpenSSL's security level forbids the certificate or its key.
    case refused
  }

  public let file: File
  public let reason: Reason

  init(_ file: File, _ reason: Reason) { (self.file, self.reason) = (file, reason) }
}

extension CertificateFault: CustomStringConvertible {
  /// What is wrong with the file, then what is expected or to be done.
  public var description: String {
    switch (reason, file) {
    case (.unreadable(let fault), _): "\(fault)"
    case (.exposed(let mode), _):
      "other users can access the key (mode 0\(String(mode, radix: 8))); expected mode 0640 or stricter (chmod 640)"
    case (.notPEM, .certificate):
      "the file has no certificates in PEM, or a broken one; expected the server's, then its chain"
    case (.notPEM, .key): "the file has no private key in PEM; expected the certificate's key"
    case (.hasPassphrase, _): "the key has a passphrase, and no user is there to enter it; remove it (openssl pkey)"
    case (.otherPair, _): "the key is not that of the first certificate in certificate_file; expected its own key"
    case (.order(let position), _):
      "certificate \(position) has not signed the one before it; expected the server's certificate first, then each one's issuer"
    case (.lacksName(let name), _): "the certificate is not for \(name); expected that name among its alternative names"
    case (.refused, _):
      "OpenSSL refuses the certificate or its key as too weak; expected ECDSA, or RSA of at least 2048 bits"
    }
  }
}
