// SecretReader.swift -- a secret by file, systemd credential, environment variable or in the text itself.
//
// No message repeats what stands in a secret's key, not even a file name: people put the secret itself there.

import Ciphers
import Glibc

/// The longest secret in octets; every provider's is far shorter.
private let maxSecretSize = 4096

/// The ways to give the secret of a key.
private enum Source: String, CaseIterable {
  case file = "_file"
  case credential = "_credential"
  case environment = "_env"
  case inline = ""
}

extension TableReader {
  /// Whether the file gives the secret in any way.
  func isSecretGiven(_ key: String) -> Bool { !waysGiven(key).isEmpty }

  /// The keys by which the file gives the secret.
  func waysGiven(_ key: String) -> [String] {
    // Every way has to become a known key, so no short circuit.
    Source.allCases.map { key + $0.rawValue }.filter { isGiven($0) }
  }

  /// The secret of a key; nil where it is not given or is a mistake.
  func secret(_ key: String, _ form: SecretForm? = nil) -> Secret? {
    let given = Source.allCases.filter { isGiven(key + $0.rawValue) }
    guard let source = given.first else { return nil }
    guard given.count == 1 else {
      let keys = given.map { key + $0.rawValue }.joined(separator: " and ")
      report.refuse(keys, at: place.key(key), allowed: "only one of them")
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
    report.refuse("a secret of another form", at: place.key(key), allowed: form.allowed)
    return nil
  }

  private func inlineSecret(_ key: String, _ setting: String) -> Secret? {
    inlineSecrets.append(key)
    return Secret(setting)
  }

  /// Warns of every secret that was read out of the text itself.
  func warnOfInlineSecrets() {
    for key in inlineSecrets {
      warn(key, "a secret in the configuration file is read by everyone who reads the file; better \(key)_file")
    }
  }

  private func secretVariable(_ key: String, _ setting: String) -> Secret? {
    guard let value = report.environment(setting) else {
      report.refuse(
        "a variable that is not set", at: place.key(key), allowed: "the name of an environment variable that is set")
      return nil
    }
    return secret(key, Array(value.utf8))
  }

  private func secretCredential(_ key: String, _ setting: String) -> Secret? {
    guard let directory = report.environment("CREDENTIALS_DIRECTORY"), !directory.isEmpty else {
      report.refuse(
        "no $CREDENTIALS_DIRECTORY in the environment", at: place.key(key),
        allowed: "a name that the unit's LoadCredential= gives; by hand, CREDENTIALS_DIRECTORY=FOLDER with such files")
      return nil
    }
    guard !setting.contains("/"), setting != ".", setting != ".." else {
      report.refuse("a path", at: place.key(key), allowed: "the name of a credential, without \"/\"")
      return nil
    }
    let path = "\(directory)/\(setting)"
    guard access(path, F_OK) == 0 else {
      report.refuse(
        "no such credential in $CREDENTIALS_DIRECTORY", at: place.key(key),
        allowed: "a name that the unit's LoadCredential= gives")
      return nil
    }
    return content(key, path).flatMap { secret(key, $0.octets) }
  }

  private func secretFile(_ key: String, _ setting: String) -> Secret? {
    // Where the program is started from must not decide which file is read.
    guard setting.hasPrefix("/") else {
      report.refuse("no absolute path (not shown)", at: place.key(key), allowed: "the path of a file, from \"/\" on")
      return nil
    }
    guard let content = content(key, setting) else { return nil }
    report.didReadSecret(at: place.key(key))
    if content.mode & 0o077 != 0 {
      let mode = "0" + String(content.mode, radix: 8)
      guard content.isOnReadOnlyMount || isHandedOut(setting) else {
        report.refuse("a file of mode \(mode)", at: place.key(key), allowed: "mode 0600 or stricter (chmod 600)")
        return nil
      }
      warn(
        key,
        "mode \(mode) lets others read the file; accepted, because its folder is one that secrets are handed out in")
    }
    return secret(key, content.octets)
  }

  /// Whether the file lies where container engines and systemd put secrets, which they make readable by others.
  private func isHandedOut(_ path: String) -> Bool {
    guard let resolved = realpath(path, nil) else { return false }
    defer { free(resolved) }
    let path = String(cString: resolved)
    let directories = ["/run/secrets", report.environment("CREDENTIALS_DIRECTORY") ?? ""]
    return directories.contains { !$0.isEmpty && path.hasPrefix($0.hasSuffix("/") ? $0 : $0 + "/") }
  }

  private func content(_ key: String, _ path: String) -> FileContent? {
    do {
      return try FileContent.read(path, limit: maxSecretSize)
    } catch {
      let remedy =
        error.kind == .denied
        ? "expected \(Reader.ours.secretRemedy)"
        : error.remedy("a file with the secret", missing: "create it with mode 0600") + ", or use a systemd credential"
      report.refuse(error.found, at: place.key(key), allowed: remedy, error.wording)
      return nil
    }
  }

  /// The secret in these octets, without the line end that editors and `echo` leave.
  private func secret(_ key: String, _ octets: [UInt8]) -> Secret? {
    var octets = octets[...]
    while let last = octets.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") { octets.removeLast() }
    guard !octets.isEmpty else {
      report.refuse("an empty secret", at: place.key(key), allowed: "a secret that is not empty")
      return nil
    }
    guard let text = String(validating: octets, as: UTF8.self), let line = Value.string(text).line else {
      report.refuse("a secret that is not one line of text", at: place.key(key), allowed: "one line of UTF-8")
      return nil
    }
    return Secret(line)
  }
}
