// CertificatePairTests.swift -- what is found in a certificate and its key before a client meets them.

import CTLS
import Files
import TLSTestSupport
import TestSupport
import Testing

@testable import Streams

/// 2020-01-01 and 2120-01-01, the lifetime of the certificates that are made here.
private let (begin, end) = (Int64(1_577_836_800), Int64(4_733_510_400))

@Suite struct CertificatePairTests {
  private let folder = TemporaryFolder()
  private let certificates: TestCertificates

  init() throws {
    certificates = try TestCertificates(in: folder)
    try certificates.make("middle")
    try certificates.make("server", for: "DNS:dns.test,DNS:*.dns.test,IP:192.0.2.53", by: "middle")
  }

  /// The certificates of these names in one file.
  private func chain(_ names: String...) throws -> [UInt8] {
    try names.flatMap { try #require(folder.read("\($0).pem")) }
  }

  private func key(_ name: String) throws -> [UInt8] { try #require(folder.read("\(name).key")) }

  private func fault(_ chain: [UInt8], _ key: [UInt8], name: String? = "dns.test") -> CertificateFault.Reason? {
    do throws(CertificateFault) {
      _ = try CertificatePair(certificates: chain, key: key, name: name)
      return nil
    } catch { return error.reason }
  }

  @Test func `a chain in order with its key is accepted, whole or without its authority`() throws {
    let pair = try CertificatePair(certificates: chain("server", "middle", "ca"), key: key("server"), name: "dns.test")
    #expect((pair.begin, pair.end) == (begin, end))
    #expect(pair.exposedMode == nil)
    #expect(try fault(chain("server", "middle"), key("server")) == nil)
    #expect(try fault(chain("server"), key("server"), name: nil) == nil)
  }

  @Test func `a certificate is for its alternative names and addresses only`() throws {
    let pair = try CertificatePair(certificates: chain("server"), key: key("server"), name: nil)
    for name in ["dns.test", "DNS.TEST", "token.dns.test"] { #expect(pair.isFor(name: name)) }
    // The last one is the subject's common name.
    for name in ["test", "a.token.dns.test", "dns.tes", "server"] { #expect(!pair.isFor(name: name)) }
    #expect(pair.isFor(address: "192.0.2.53") && !pair.isFor(address: "192.0.2.54") && !pair.isFor(address: "x"))
    #expect(try fault(chain("server"), key("server"), name: "other.test") == .lacksName("other.test"))
  }

  @Test func `the key of another certificate is refused`() throws {
    #expect(try fault(chain("server", "middle"), key("middle")) == .otherPair)
    // The same when the chain begins with its authority.
    #expect(try fault(chain("middle", "server"), key("server")) == .otherPair)
  }

  @Test func `a chain with a gap, in another order or with a stranger is refused at the certificate`() throws {
    #expect(try fault(chain("server", "ca"), key("server")) == .order(position: 2))
    #expect(try fault(chain("server", "ca", "middle"), key("server")) == .order(position: 2))
    #expect(try fault(chain("server", "middle", "server"), key("server")) == .order(position: 3))
    #expect(try fault(chain("server", "middle", "middle"), key("server")) == .order(position: 3))
  }

  @Test func `what is not PEM is refused`() throws {
    let (chain, key) = try (chain("server"), key("server"))
    #expect(fault([], key) == .notPEM && fault(chain, []) == .notPEM)
    #expect(fault(key, key) == .notPEM && fault(chain, chain) == .notPEM)
    #expect(fault(chain + chain.dropLast(40), key) == .notPEM)
    #expect(fault(chain, Array(key.dropLast(40))) == .notPEM)
    #expect(fault(chain + Array("a remark\n".utf8), key) == nil)
    #expect(fault(chain + key, key) == nil)
  }

  @Test func `a key with a passphrase is refused, and no terminal is asked`() throws {
    try certificates.openssl([
      "pkey", "-in", folder.path(of: "server.key"), "-aes128", "-passout", "pass:secret", "-out",
      folder.path(of: "closed.key"),
    ])
    #expect(try fault(chain("server"), key("closed")) == .hasPassphrase)
  }

  @Test func `a key that is too weak for TLS is refused`() throws {
    try certificates.make("weak", for: "DNS:dns.test", key: "rsa:512")
    #expect(try fault(chain("weak"), key("weak")) == .refused)
    #expect(ERR_peek_error() == 0)
  }

  @Test func `the last sixth of the lifetime is known`() throws {
    let pair = try CertificatePair(certificates: chain("server"), key: key("server"), name: nil)
    let last = end - (end - begin) / 6
    #expect(pair.state(at: begin - 1) == .notYetValid)
    #expect(pair.state(at: begin) == .valid && pair.state(at: last) == .valid)
    #expect(pair.state(at: last + 1) == .endsSoon && pair.state(at: end) == .endsSoon)
    #expect(pair.state(at: end + 1) == .expired)
  }

  @Test func `an expired certificate is read`() throws {
    try certificates.make("old", for: "DNS:dns.test", until: 2021)
    #expect(
      try CertificatePair(certificates: chain("old"), key: key("old"), name: "dns.test").state(at: end) == .expired)
  }

  // MARK: files

  private func load(certificate: String, key: String, credentials: String? = nil) throws(CertificateFault)
    -> CertificatePair
  {
    try CertificatePair(
      certificateFile: folder.path(of: certificate), keyFile: folder.path(of: key), name: "dns.test",
      credentials: credentials)
  }

  @Test(arguments: [UInt32(0o600), 0o640, 0o400, 0o440]) func `a key that its group reads is accepted`(mode: UInt32)
    throws
  {
    try folder.write(key("server"), to: "k", mode: mode)
    #expect(try load(certificate: "server.pem", key: "k").exposedMode == nil)
  }

  @Test(arguments: [UInt32(0o644), 0o660, 0o641, 0o604]) func `a key that others reach is refused`(mode: UInt32) throws
  {
    try folder.write(key("server"), to: "k", mode: mode)
    #expect(throws: CertificateFault(.key, .exposed(mode: mode))) { try load(certificate: "server.pem", key: "k") }
    // Where systemd provides it, its mode is not the operator's choice.
    #expect(try load(certificate: "server.pem", key: "k", credentials: folder.path).exposedMode == mode)
  }

  @Test func `a file that cannot be read is named`() throws {
    try folder.write(key("server"), to: "k", mode: 0o600)
    let missing = FileFault.unreadable(2)
    #expect(throws: CertificateFault(.certificate, .unreadable(missing))) { try load(certificate: "no", key: "k") }
    #expect(throws: CertificateFault(.key, .unreadable(missing))) { try load(certificate: "server.pem", key: "no") }
    folder.make("folder")
    #expect(throws: CertificateFault(.key, .unreadable(.unreadable(21)))) {
      try load(certificate: "server.pem", key: "folder")
    }
    let large = [UInt8](repeating: 10, count: CertificatePair.maximumSize + 1)
    folder.write(large, to: "large")
    #expect(throws: CertificateFault(.certificate, .unreadable(.tooLarge(limit: CertificatePair.maximumSize)))) {
      try load(certificate: "large", key: "k")
    }
  }

  // MARK: contexts

  @Test func `a context takes the pair, and a later one with its shorter chain instead`() throws {
    try certificates.make("next", for: "DNS:dns.test")
    let context = try #require(SSL_CTX_new(TLS_server_method()))
    ctls_bound_work(UnsafeMutableRawPointer(context))
    defer { SSL_CTX_free(context) }
    for (names, count) in [(["server", "middle", "ca"], 2), (["next"], 0)] {
      let octets = try names.flatMap { try chain($0) }
      let pair = try CertificatePair(certificates: octets, key: key(names[0]), name: "dns.test")
      #expect(pair.use(in: context))
      #expect(SSL_CTX_check_private_key(context) == 1)
      var others: OpaquePointer?
      withUnsafeMutablePointer(to: &others) { _ = SSL_CTX_ctrl(context, SSL_CTRL_GET_CHAIN_CERTS, 0, $0) }
      #expect(max(0, others.map { OPENSSL_sk_num($0) } ?? 0) == count)
    }
  }
}
