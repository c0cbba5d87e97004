// SecretReader.swift -- reads a secret from a file, a systemd credential, an environment variable or the text itself.
//
// No message repeats the value of a secret's key: people write the secret itself there, instead of the path of a file. A
// path is shown only if its folder exists, which no secret is.

import Ciphers
import Files
import Glibc

/// The longest accepted secret in octets; the secrets of all providers are far shorter.
private let maxSecretSize = 4096

/// The ways to give the secret of a key.
private enum Source: String, CaseIterable {
  case file = "_file"
  case credential = "_credential"
  case environment = "_env"
  case inline = ""
}

extension TableReader {
  /// Whether the configuration gives the secret in any way.
  func isSecretGiven(_ key: String) -> Bool { !waysGiven(key).isEmpty }

  /// The keys that give the secret.
  func waysGiven(_ key: String) -> [String] {
    // `isGiven` makes a key known, so it is called for every way.
    Source.allCases.map { key + $0.rawValue }.filter { isGiven($0) }
  }

  /// The secret of a key; nil if it is missing or invalid. A missing one is no mistake.
  func secret(_ key: String, _ form: SecretForm? = nil) -> Secret? {
    let given = Source.allCases.filter { isGiven(key + $0.rawValue) }
    guard let source = given.first else { return nil }
    guard given.count == 1 else {
      let keys = given.map { key + $0.rawValue }.joined(separator: " and ")
      report.refuse("given by \(keys)", at: place.key(key), allowed: "only one of them")
      return nil
    }
    let key = key + source.rawValue
    var setting = ""
    read(key, &setting, .text)
    guard isSound(key) else { return nil }
    let secret: Secret? =
      switch source {
      case .file: secretFile(key, setting)
      case .credential: secretCredential(key, setting)
      case .environment: secretVariable(key, setting)
      case .inline: inlineSecret(key, setting)
      }
    guard let secret, let form, !form.accepts(secret.reveal) else { return secret }
    report.refuse("the secret has the wrong form", at: place.key(key), allowed: form.allowed)
    return nil
  }

  private func inlineSecret(_ key: String, _ setting: String) -> Secret? {
    inlineSecrets.append(key)
    return Secret(setting)
  }

  /// Warns about every secret in the configuration file itself.
  func warnOfInlineSecrets() {
    for key in inlineSecrets {
      warn(key, "everyone who can read this file can read the secret; use \(key)_file instead")
    }
  }

  private func secretVariable(_ key: String, _ setting: String) -> Secret? {
    guard let value = report.environment(setting) else {
      report.refuse(
        "the variable is not set", at: place.key(key), allowed: "the name of an environment variable that is set")
      return nil
    }
    return secret(key, Array(value.utf8))
  }

  private func secretCredential(_ key: String, _ setting: String) -> Secret? {
    guard let directory = report.environment("CREDENTIALS_DIRECTORY"), !directory.isEmpty else {
      report.refuse(
        "$CREDENTIALS_DIRECTORY is not set", at: place.key(key),
        allowed: "systemd sets it for a unit with LoadCredential=; outside the unit, set CREDENTIALS_DIRECTORY=FOLDER",
        .failure)
      return nil
    }
    guard !setting.contains("/"), setting != ".", setting != ".." else {
      report.refuse("is a path", at: place.key(key), allowed: "the name of a credential, without \"/\"")
      return nil
    }
    let path = "\(directory)/\(setting)"
    guard access(path, F_OK) == 0 else {
      report.refuse(
        "no such credential in $CREDENTIALS_DIRECTORY", at: place.key(key),
        allowed: "a name that the unit's LoadCredential= defines")
      return nil
    }
    return content(key, path).flatMap { secret(key, $0.octets) }
  }

  private func secretFile(_ key: String, _ setting: String) -> Secret? {
    // The working directory must not decide which file is read.
    guard setting.hasPrefix("/") else {
      report.refuse("not an absolute path (not shown)", at: place.key(key), allowed: "a path that begins with \"/\"")
      return nil
    }
    guard let content = content(key, setting) else { return nil }
    report.didReadSecret(at: place.key(key))
    if content.mode & 0o077 != 0 {
      let mode = "0" + String(content.mode, radix: 8)
      guard content.isProvided(credentials: report.environment("CREDENTIALS_DIRECTORY")) else {
        report.refuse(
          "\(shownPath(setting))other users can access the file (mode \(mode))", at: place.key(key),
          allowed: "mode 0600 or stricter (chmod 600)")
        return nil
      }
      warn(
        key,
        "mode \(mode) lets other users read the file; accepted, because its folder is meant for secrets or read-only")
    }
    return secret(key, content.octets)
  }

  /// The path as the first part of a message; empty if the text may be a secret, which can begin with "/" too.
  private func shownPath(_ path: String) -> String {
    guard let slash = path.lastIndex(of: "/"), let folder = realpath(String(path[...slash]), nil) else { return "" }
    defer { free(folder) }
    return String(cString: folder) == "/" ? "" : "\(shownText(path)): "
  }

  private func content(_ key: String, _ path: String) -> RegularFile? {
    do {
      return try FileContent.read(path, limit: maxSecretSize)
    } catch {
      let remedy =
        error.kind == .notPermitted
        ? "expected \(Reader.ours.secretRemedy)"
        : error.remedy("a file with the secret", missing: "create it with mode 0600") + ", or use a systemd credential"
      report.refuse(shownPath(path) + error.found, at: place.key(key), allowed: remedy, .failure)
      return nil
    }
  }

  /// The secret in these octets, without the line end that editors and `echo` add.
  private func secret(_ key: String, _ octets: [UInt8]) -> Secret? {
    var octets = octets[...]
    while let last = octets.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") { octets.removeLast() }
    guard !octets.isEmpty else {
      report.refuse("the secret is empty", at: place.key(key), allowed: "one line of text")
      return nil
    }
    guard let text = String(validating: octets, as: UTF8.self), let line = Value.string(text).line else {
      report.refuse("the secret is not one line of text", at: place.key(key), allowed: "one line of UTF-8")
      return nil
    }
    return Secret(line)
  }
}
