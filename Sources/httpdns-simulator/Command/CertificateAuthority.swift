// CertificateAuthority.swift -- creates the simulator's own CA and its one certificate at every start.
//
// Keys are P-256 and never leave the process; only the CA's certificate is written to a file.

import CCrypto
import DNSWire
import Streams

/// A new CA with one server certificate, as PEM text.
struct CertificateAuthority {
  /// The certificate that clients have to trust.
  let caCertificate: [UInt8]
  /// The server's certificate with its key.
  let pair: CertificatePair

  /// The names and addresses of the providers.
  static let providerNames = [
    "dns.alidns.com", "223.5.5.5", "223.6.6.6", "dns.google", "8.8.8.8", "8.8.4.4",
    "cloudflare-dns.com", "1.1.1.1",
    "dns.adguard-dns.com", "doh.pub", "1.12.12.12", "120.53.53.53", "119.29.29.98", "119.29.29.99",
    "resolvers.httpdns.aliyuncs.com", "httpdns.baidubce.com", "httpdns.volcengineapi.com", "103.224.222.208",
    "httpdns.ucloud.cn",
    "203.107.1.1", "localhost", "127.0.0.1", "::1",
  ]

  /// Creates a CA and a certificate for the given names and addresses.
  ///
  /// - Parameter age: seconds since both became valid; an hour tolerates clients whose clock is slightly behind.
  /// - Throws: `SimulatorError`, usually for a name that is not allowed in a certificate.
  init(names: [String] = CertificateAuthority.providerNames, age: Int = 3_600)
    throws(SimulatorError)
  {
    let caKey = try KeyPair()
    let serverKey = try KeyPair()
    // A client that trusts several finds the issuer by its name.
    let ca = try Certificate(subject: "httpdns-simulator CA \(UInt32.random(in: 0 ... .max))", key: caKey, age: age)
    try ca.extend(NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
    try ca.extend(NID_key_usage, "critical,keyCertSign,cRLSign")
    try ca.sign(issuer: ca, key: caKey)
    let server = try Certificate(subject: "httpdns-simulator", key: serverKey, age: age)
    try server.extend(NID_basic_constraints, "critical,CA:FALSE")
    try server.extend(NID_key_usage, "critical,digitalSignature")
    try server.extend(NID_ext_key_usage, "serverAuth")
    try server.extend(NID_subject_alt_name, try CertificateAuthority.alternativeNames(names))
    try server.sign(issuer: ca, key: caKey)
    caCertificate = try ca.pem()
    let (certificate, key) = (try server.pem(), try serverKey.pem())
    do { pair = try CertificatePair(certificates: certificate, key: key, name: nil) } catch {
      throw SimulatorError(description: "\(error)")
    }
  }

  private static func alternativeNames(_ names: [String]) throws(SimulatorError) -> String {
    var entries: [String] = []
    for name in names {
      if IPAddress(text: name) != nil {
        entries.append("IP:\(name)")
      } else if DomainName(text: name)?.isPlain == true {
        entries.append("DNS:\(name)")
      } else {
        throw SimulatorError(description: "\"\(name)\" is neither a host name nor an address")
      }
    }
    return entries.joined(separator: ",")
  }
}

/// A P-256 key pair; owns the `EVP_PKEY`.
private final class KeyPair {
  let handle: OpaquePointer

  init() throws(SimulatorError) {
    let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
    defer { EVP_PKEY_CTX_free(context) }
    var made: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1,
      EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
      EVP_PKEY_keygen(context, &made) == 1, let made
    else { throw SimulatorError(description: "no P-256 key") }
    handle = made
  }

  deinit { EVP_PKEY_free(handle) }

  func pem() throws(SimulatorError) -> [UInt8] {
    try memoryText { PEM_write_bio_PrivateKey($0, handle, nil, nil, 0, nil, nil) }
  }
}

/// A certificate under construction; owns the `X509`.
private final class Certificate {
  private let handle: OpaquePointer
  private static let lifetime = 30 * 86_400

  init(subject: String, key: KeyPair, age: Int) throws(SimulatorError) {
    guard let handle = X509_new() else { throw SimulatorError(description: "no certificate") }
    self.handle = handle
    let name = X509_get_subject_name(handle)
    let text = Array(subject.utf8)
    guard X509_set_version(handle, 2) == 1,
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(handle), .random(in: 1...UInt64(Int64.max))) == 1,
      X509_gmtime_adj(X509_getm_notBefore(handle), -age) != nil,
      X509_gmtime_adj(X509_getm_notAfter(handle), Certificate.lifetime) != nil,
      X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8, text, Int32(text.count), -1, 0) == 1,
      X509_set_pubkey(handle, key.handle) == 1
    else { throw SimulatorError(description: "no certificate for \(subject)") }
  }

  deinit { X509_free(handle) }

  func extend(_ identifier: Int32, _ value: String) throws(SimulatorError) {
    let extension_ = X509V3_EXT_conf_nid(nil, nil, identifier, value)
    defer { X509_EXTENSION_free(extension_) }
    guard extension_ != nil, X509_add_ext(handle, extension_, -1) == 1 else {
      throw SimulatorError(description: "\"\(value)\" cannot stand in a certificate")
    }
  }

  func sign(issuer: Certificate, key: KeyPair) throws(SimulatorError) {
    guard X509_set_issuer_name(handle, X509_get_subject_name(issuer.handle)) == 1,
      X509_sign(handle, key.handle, EVP_sha256()) > 0
    else { throw SimulatorError(description: "no signature") }
  }

  func pem() throws(SimulatorError) -> [UInt8] { try memoryText { PEM_write_bio_X509($0, handle) } }
}

/// Returns what `write` writes to a memory BIO.
private func memoryText(_ write: (OpaquePointer) -> Int32) throws(SimulatorError) -> [UInt8] {
  guard let memory = BIO_new(BIO_s_mem()) else { throw SimulatorError(description: "no memory") }
  defer { BIO_free(memory) }
  guard write(memory) == 1 else { throw SimulatorError(description: "no PEM text") }
  return [UInt8](unsafeUninitializedCapacity: BIO_ctrl_pending(memory)) { buffer, count in
    count = Int(max(0, BIO_read(memory, buffer.baseAddress, Int32(buffer.count))))
  }
}
