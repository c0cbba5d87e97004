// ServiceReaderTests.swift -- `check` as root says what the service may not read.

import Foundation
import Testing

@Suite(.blocking) struct ServiceReaderTests {
  /// A machine whose httpdnsd.service reads a file in /etc as a user of its own, and a secret of root's beside that file.
  private func withService(
    _ body: (
      _ check: () throws -> (ending: ChildProcess.Ending, output: String, error: String), _ secret: String
    ) throws -> Void
  ) throws {
    try withLab { lab in
      // /etc of the namespace is a folder of the test's, which others have to be able to enter.
      chmod(lab.folder.path, 0o755)
      let files = "\(lab.folder.path)/etc"
      let units = "\(files)/systemd/system"
      try FileManager.default.createDirectory(atPath: units, withIntermediateDirectories: true)
      func write(_ text: String, to path: String, mode: mode_t) throws {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        chmod(path, mode)
      }
      try write("root:x:0:0::/:\nhttpdnsd:x:711:711::/:\n", to: "\(files)/passwd", mode: 0o644)
      try write(
        "[Service]\nExecStart=/usr/bin/httpdnsd run --config /etc/httpdnsd.toml\nUser=httpdnsd\n",
        to: "\(units)/httpdnsd.service", mode: 0o644)
      let account = "account_id = \"1\"\naccess_key_id = \"id\"\naccess_key_secret_file = \"/etc/alidns.secret\"\n"
      try write("[[provider]]\nname = \"alidns\"\n\(account)", to: "\(files)/httpdnsd.toml", mode: 0o644)
      let secret = "\(files)/alidns.secret"
      try write("secret\n", to: secret, mode: 0o600)
      let machine = try NetworkNamespace(in: lab)
      try machine.setResolvers([])
      try body(
        { try ChildProcess.run(machine.prefix + [Programs.daemon, "check", "--config", "/etc/httpdnsd.toml"]) }, secret)
    }
  }

  @Test(.enabled(if: NetworkNamespace.isPossible, "namespaces need root"))
  func `a secret of root's is a mistake, with the service's user and what helps`() throws {
    try withService { check, secret in
      let (ending, output, error) = try check()
      #expect(ending == .exited(1) && output.isEmpty)
      let key = "/etc/httpdnsd.toml: provider[\"alidns\"].access_key_secret_file"
      #expect(
        error == "\(key): /etc/alidns.secret: user httpdnsd may not read it; expected a file that user httpdnsd owns "
          + "(chown httpdnsd) and can reach, or a systemd credential\n")
      chown(secret, 711, 711)
      let (repaired, said, nothing) = try check()
      #expect(repaired == .exited(0) && nothing.isEmpty, "\(nothing)")
      let readable = "provider[\"alidns\"].access_key_secret_file: the service's user httpdnsd can read it"
      #expect(said.hasPrefix("/etc/httpdnsd.toml: no mistakes\n\(readable)\nLocalDNS: "), "\(said)")
    }
  }

  @Test(.enabled(if: NetworkNamespace.isPossible, "namespaces need root"))
  func `a secret below a folder that the service may not enter is a mistake`() throws {
    try withService { check, secret in
      chown(secret, 711, 711)
      let text = try String(contentsOfFile: secret, encoding: .utf8)
      let folder = (secret as NSString).deletingLastPathComponent
      let closed = "\(folder)/closed"
      mkdir(closed, 0o700)
      try text.write(toFile: "\(closed)/secret", atomically: false, encoding: .utf8)
      chmod("\(closed)/secret", 0o600)
      chown("\(closed)/secret", 711, 711)
      unlink(secret)
      symlink("closed/secret", secret)
      #expect(try check().ending == .exited(1))
      chmod(closed, 0o711)
      #expect(try check().ending == .exited(0))
    }
  }

  @Test(.enabled(if: NetworkNamespace.isPossible, "namespaces need root"))
  func `a user that is not there is a warning`() throws {
    try withService { check, secret in
      unlink((secret as NSString).deletingLastPathComponent + "/passwd")
      let (ending, output, error) = try check()
      #expect(ending == .exited(0) && !output.contains("can read it"))
      #expect(error.contains("warning: httpdnsd.service: user httpdnsd does not exist, so the service "), "\(error)")
    }
  }
}
