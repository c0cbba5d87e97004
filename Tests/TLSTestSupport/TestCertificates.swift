// TestCertificates.swift -- an authority and certificates of any kind, made by openssl.

import TestSupport

/// An authority for tests, and certificates that it signed. Files in a folder: `NAME.pem` and `NAME.key`.
package struct TestCertificates {
  private let folder: TemporaryFolder
  /// The path of the authority's certificate.
  package var authority: String { folder.path(of: "ca.pem") }

  /// openssl failed.
  package struct Failure: Error { let arguments: [String] }

  package init(in folder: TemporaryFolder) throws {
    self.folder = folder
    let lines = [
      "[ca]", "default_ca = d", "[d]", "database = \(folder.path)/index", "new_certs_dir = \(folder.path)",
      "default_md = sha256", "policy = p", "copy_extensions = copy", "rand_serial = yes", "[p]",
      "commonName = supplied",
    ]
    folder.write(lines.map { "\($0)\n" }.joined(), to: "ca.conf")
    folder.write("", to: "index")
    // Several certificates have the same subject.
    folder.write("unique_subject = no\n", to: "index.attr")
    try openssl(["req", "-x509", "-days", "30", "-subj", "/CN=authority", "-out", authority] + newKey("ca", "ec"))
  }

  /// Makes `name.pem` and `name.key`, valid from 2020 until the year `end` begins.
  ///
  /// - Parameters:
  ///   - names: the alternative names as openssl's configuration has them; empty for an authority.
  ///   - issuer: the name of the authority.
  ///   - key: the kind of key, as `-newkey` has it.
  package func make(
    _ name: String, for names: String = "", by issuer: String = "ca", until end: Int = 2120, key: String = "ec"
  ) throws {
    let request = folder.path(of: "\(name).csr")
    let extensions = names.isEmpty ? "basicConstraints=critical,CA:TRUE" : "subjectAltName=\(names)"
    try openssl(
      ["req", "-new", "-subj", "/CN=\(name)", "-addext", extensions, "-out", request] + newKey(name, key))
    try openssl([
      "ca", "-batch", "-notext", "-config", folder.path(of: "ca.conf"), "-cert", folder.path(of: "\(issuer).pem"),
      "-keyfile", folder.path(of: "\(issuer).key"), "-in", request, "-startdate", "20200101000000Z", "-enddate",
      "\(end)0101000000Z", "-out", folder.path(of: "\(name).pem"),
    ])
  }

  /// Calls openssl.
  package func openssl(_ arguments: [String]) throws {
    guard try run(["openssl"] + arguments, isQuiet: true) == 0 else { throw Failure(arguments: arguments) }
  }

  private func newKey(_ name: String, _ kind: String) -> [String] {
    let curve = kind == "ec" ? ["-pkeyopt", "ec_paramgen_curve:P-256"] : []
    return ["-newkey", kind] + curve + ["-nodes", "-keyout", folder.path(of: "\(name).key")]
  }
}
