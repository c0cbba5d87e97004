// SecretTests.swift -- the ways to give a secret, and their messages, which never show it.

import Ciphers
import Configuration
import Glibc
import Testing

private let account = "[[provider]]\naccount_id = \"999999\"\naccess_key_id = \"id\"\n"

/// The octets of the secret that a text gives; nil where the text is refused.
private func secret(_ text: String, environment: [String: String] = [:]) -> [UInt8]? {
  guard case .success(let loaded) = parse(account + text, environment: environment),
    case .alidns(let account, _, _) = loaded.configuration.providers[0].kind
  else { return nil }
  return account?.accessKeySecret.reveal
}

@Test(arguments: ["canary", "canary\n", "canary\r\n"])
func `a secret file is read without its line end`(content: String) throws {
  try withFile(content) { _, path in
    #expect(secret("access_key_secret_file = \"\(path)\"") == Array("canary".utf8))
    #expect(warnings(account + "access_key_secret_file = \"\(path)\"").isEmpty)
  }
}

@Test(arguments: [0o640, 0o604, 0o660, 0o644] as [mode_t])
func `a secret file that others can read is refused`(mode: mode_t) throws {
  try withFile("canary", mode: mode) { _, path in
    let found = mistakes(account + "access_key_secret_file = \"\(path)\"")
    let octal = String(mode, radix: 8)
    let problem = "\(path): other users can access the file (mode 0\(octal)); expected mode 0600"
    #expect(found.map { $0.contains(problem) } == [true])
  }
}

@Test func `a secret file in the credentials directory may be readable by others`() throws {
  try withFile("canary", mode: 0o444) { directory, path in
    let text = account + "access_key_secret_file = \"\(path)\""
    let environment = ["CREDENTIALS_DIRECTORY": directory]
    #expect(mistakes(text, environment: environment) == [])
    #expect(warnings(text, environment: environment).map { $0.contains("mode 0444") } == [true])
  }
}

@Test func `a systemd credential is given by its name`() throws {
  try withFile("canary\n", mode: 0o440) { directory, _ in
    let environment = ["CREDENTIALS_DIRECTORY": directory]
    let text = "access_key_secret_credential = \"secret\""
    #expect(secret(text, environment: environment) == Array("canary".utf8))
    #expect(mistakes(account + text).map { $0.contains("$CREDENTIALS_DIRECTORY is not set; ") } == [true])
    #expect(mistakes(account + text).map { $0.contains("set CREDENTIALS_DIRECTORY=FOLDER") } == [true])
    let path = account + "access_key_secret_credential = \"../secret\""
    #expect(mistakes(path, environment: environment).map { $0.contains("without \"/\"") } == [true])
    let other = account + "access_key_secret_credential = \"other\""
    #expect(mistakes(other, environment: environment).map { $0.contains("LoadCredential= defines") } == [true])
  }
}

@Test func `a secret comes from an environment variable`() throws {
  let text = "access_key_secret_env = \"ALIDNS\""
  #expect(secret(text, environment: ["ALIDNS": "canary"]) == Array("canary".utf8))
  #expect(mistakes(account + text).map { $0.contains("the variable is not set") } == [true])
  #expect(mistakes(account + text, environment: ["ALIDNS": "\n"]).map { $0.contains("the secret is empty") } == [true])
}

@Test func `a secret in the text is accepted with a warning`() throws {
  #expect(secret("access_key_secret = \"canary\"") == Array("canary".utf8))
  #expect(
    warnings(account + "access_key_secret = \"canary\"").map { $0.contains("use access_key_secret_file instead") } == [
      true
    ])
}

@Test func `a secret given in two ways is refused`() throws {
  let text = account + "access_key_secret = \"canary\"\naccess_key_secret_env = \"X\""
  #expect(
    mistakes(text).map { $0.contains("given by access_key_secret_env and access_key_secret; expected only one") } == [
      true
    ])
}

@Test(arguments: ["", "\n", "one\ntwo", "tab\tbed"])
func `a secret that is empty or has several lines is refused`(content: String) throws {
  try withFile(content) { _, path in
    #expect(mistakes(account + "access_key_secret_file = \"\(path)\"").count == 1)
  }
}

@Test(arguments: ["secret", "./secret", "~/secret"])
func `a relative path of a secret file is refused and not shown`(path: String) {
  let found = mistakes(account + "access_key_secret_file = \"\(path)\"")
  #expect(
    found.map { $0.hasSuffix("not an absolute path (not shown); expected a path that begins with \"/\"") }
      == [true])
}

@Test(arguments: [
  ("/nonexistent/secret", "no such file; create it with mode 0600, or use a systemd credential"),
  ("/tmp", "is a directory; expected a file with the secret, or use a systemd credential"),
  ("/dev/zero", "/dev/zero: is not a regular file; expected a file with the secret, or use a systemd credential"),
])
func `the message about an unreadable secret file names a remedy`(path: String, line: String) {
  let found = mistakes(account + "access_key_secret_file = \"\(path)\"")
  #expect(found == ["test.toml: provider[\"alidns\"].access_key_secret_file: \(line)"])
}

@Test func `a secret in the text for a service on this machine causes no warning`() {
  let demonstration = account + "access_key_secret = \"canary\"\nscheme = \"http\"\n"
  #expect(warnings(demonstration + "servers = [\"127.0.0.1:8053\", \"[::1]:8053\"]").isEmpty)
  for servers in ["\"127.0.0.1:8053\", \"192.0.2.1\"", "\"localhost:8053\""] {
    let lines = warnings(demonstration + "servers = [\(servers)]")
    #expect(lines.contains { $0.contains("use access_key_secret_file instead") }, "\(lines)")
  }
}

@Test(.enabled(if: geteuid() != 0, "root can read every file"))
func `the message about another user's secret file names the current user`() throws {
  try withFile("canary", mode: 0) { _, path in
    let found = mistakes(account + "access_key_secret_file = \"\(path)\"")
    #expect(
      found.map { $0.contains("_file: \(path): user ") && $0.contains(" may not read it; expected a ") } == [true])
  }
}

@Test func `the path of a missing secret file is shown if its folder exists, for it could be the secret itself`() throws
{
  func message(_ path: String) -> String? { mistakes(account + "access_key_secret_file = \"\(path)\"").first }
  try withFile("canary") { directory, _ in
    for path in ["\(directory)/missing", "\(directory)/./missing"] {
      #expect(
        message(path)?.contains(".access_key_secret_file: \(path): no such file; create it with mode 0600") == true)
    }
  }
  for path in ["/canary", "//canary", "/./canary", "/../canary", "/tmp/../canary", "/canary/x", "/etc/passwd/canary"] {
    #expect(message(path)?.contains(".access_key_secret_file: no such file; create") == true, "\(path)")
  }
}

@Test(arguments: [
  "account_id = \"1\"", "access_key_id = \"1\"", "access_key_secret = \"canary\"",
  "account_id = \"1\"\naccess_key_secret = \"canary\"",
])
func `an incomplete account is a mistake`(text: String) {
  #expect(!mistakes("[[provider]]\n\(text)").isEmpty)
}
