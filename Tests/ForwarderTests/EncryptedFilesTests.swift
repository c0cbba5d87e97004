// EncryptedFilesTests.swift -- which key a fault of a certificate, its key or the tokens is reported for, and what is warned of.

import Configuration
import Forwarder
import TLSTestSupport
import TestSupport
import Testing

@Suite struct EncryptedFilesTests {
  private let folder = TemporaryFolder()

  init() throws {
    let certificates = try TestCertificates(in: folder)
    try certificates.make("one", for: "DNS:dns.test")
    try certificates.make("wild", for: "DNS:dns.test,DNS:*.dns.test")
    folder.write("phone 0123456789abcdef\n", to: "tokens", mode: 0o600)
  }

  private func encrypted(
    _ listeners: String = "dot = [\"127.0.0.1:853\"]", certificate: String = "one", key: String = "one.key",
    tokens: String = "", name: String = "dns.test"
  ) throws -> Configuration.Encrypted {
    let tokens = tokens.isEmpty ? "" : folder.path(of: tokens)
    return try Configuration.parse(
      text: """
        [encrypted]
        \(listeners)
        name = "\(name)"
        certificate_file = "\(folder.path)/\(certificate).pem"
        key_file = "\(folder.path)/\(key)"
        tokens_file = "\(tokens)"
        """, fileName: "test.toml", environment: { _ in nil }
    ).configuration.encrypted
  }

  private func lines(_ encrypted: Configuration.Encrypted) -> [String] {
    do throws(EncryptedFiles.Faults) {
      _ = try EncryptedFiles(encrypted, environment: { _ in nil })
      return []
    } catch { return error.lines }
  }

  @Test func `files that fit are read`() throws {
    let files = try EncryptedFiles(encrypted(tokens: "tokens"), environment: { _ in nil })
    #expect(files.pair != nil && files.tokens?.labels == ["phone"])
    let plain = try EncryptedFiles(
      encrypted("doh_plain = [\"127.0.0.1:8053\"]", certificate: "no"), environment: { _ in nil })
    #expect(plain.pair == nil && plain.tokens == nil && plain.warnings(at: 0) == [])
    // Without a listener nothing is read.
    #expect(try lines(encrypted("", certificate: "no", tokens: "no")) == [])
  }

  @Test func `each fault names its key and its file`() throws {
    #expect(
      try lines(encrypted(certificate: "no", tokens: "no")) == [
        "encrypted.certificate_file: \(folder.path)/no.pem: No such file or directory",
        "encrypted.tokens_file: \(folder.path)/no: No such file or directory",
      ])
    for (found, beginning) in [
      (try lines(encrypted(key: "wild.key")), "encrypted.key_file: \(folder.path)/wild.key: the key is not that of"),
      (
        try lines(encrypted(name: "a.test")),
        "encrypted.certificate_file: \(folder.path)/one.pem: the certificate is not for a.test"
      ),
    ] { #expect(found.map { $0.hasPrefix(beginning) } == [true], "\(found)") }
  }

  @Test func `what clients refuse is warned of`() throws {
    let files = try EncryptedFiles(encrypted(tokens: "tokens"), environment: { _ in nil })
    let end = try #require(files.pair?.end)
    let wildcard =
      "encrypted.certificate_file: is not for *.dns.test, by which clients send a token over TLS; dot needs that"
    #expect(files.warnings(at: end - 20 * 365 * 86_400) == [wildcard])
    let wild = try EncryptedFiles(
      encrypted(certificate: "wild", key: "wild.key", tokens: "tokens"), environment: { _ in nil })
    #expect(wild.warnings(at: end - 20 * 365 * 86_400) == [])
    for (now, part) in [
      (end - 3 * 86_400, "ends in 3 days"), (end + 2 * 86_400, "has expired 2 days ago"), (0, "is not valid yet"),
    ] {
      #expect(wild.warnings(at: now).map { $0.contains(part) } == [true])
    }
  }

  @Test func `a key that all users can read is warned of where systemd provides it`() throws {
    folder.write(try #require(folder.read("one.key")), to: "k", mode: 0o444)
    let encrypted = try encrypted(key: "k")
    #expect(lines(encrypted).count == 1)
    let files = try EncryptedFiles(encrypted, environment: { $0 == "CREDENTIALS_DIRECTORY" ? folder.path : nil })
    let middle = try #require(files.pair.map { ($0.begin + $0.end) / 2 })
    #expect(files.warnings(at: middle).map { $0.hasPrefix("encrypted.key_file: mode 0444 lets other users") } == [true])
  }
}
