// EncryptedFiles.swift -- the files that `[encrypted]` names, read and judged: certificate, key and tokens.
//
// At the start and in `check` a fault is a mistake of the configuration. While the daemon runs, the files in use stay.

import Configuration
import Frontend
import Streams

/// What the encrypted listeners need besides the configuration.
public struct EncryptedFiles: Sendable {
  /// The certificate with its key; nil without `dot` and `doh`.
  public let pair: CertificatePair?
  /// The tokens; nil without `tokens_file`, so that clients need none.
  public let tokens: TokenList?
  private let encrypted: Configuration.Encrypted

  /// What is wrong with the files.
  public struct Faults: Error, Hashable, Sendable {
    /// A line for each fault: key, path, what is wrong, what is expected. Never empty.
    public let lines: [String]
  }

  /// Reads the files. Blocks, so do not call it on a loop.
  ///
  /// - Parameter environment: gives `$CREDENTIALS_DIRECTORY`, from where files of any mode are accepted.
  public init(
    _ encrypted: Configuration.Encrypted, environment: Configuration.Environment = Configuration.processEnvironment
  ) throws(Faults) {
    self.encrypted = encrypted
    let credentials = environment("CREDENTIALS_DIRECTORY")
    var lines: [String] = []
    var pair: CertificatePair?
    if encrypted.usesCertificate, let certificateFile = encrypted.certificateFile, let keyFile = encrypted.keyFile {
      do throws(CertificateFault) {
        pair = try CertificatePair(
          certificateFile: certificateFile, keyFile: keyFile, name: encrypted.name.map { Host.name($0).text },
          credentials: credentials)
      } catch {
        let isKey = error.file == .key
        lines.append("encrypted.\(isKey ? "key_file: \(keyFile)" : "certificate_file: \(certificateFile)"): \(error)")
      }
    }
    var tokens: TokenList?
    if encrypted.hasListeners, let path = encrypted.tokensFile {
      do throws(TokenList.Fault) {
        tokens = try TokenList(path: path, credentials: credentials)
      } catch { lines.append("encrypted.tokens_file: \(path): \(error)") }
    }
    guard lines.isEmpty else { throw Faults(lines: lines) }
    (self.pair, self.tokens) = (pair, tokens)
  }

  /// What clients refuse, or soon will, a line for each key.
  ///
  /// - Parameter now: seconds since 1970.
  public func warnings(at now: Int64) -> [String] {
    guard let pair else { return [] }
    var lines: [String] = []
    let day: Int64 = 86_400
    switch pair.state(at: now) {
    case .valid: break
    case .endsSoon:
      lines.append(
        "certificate_file: ends in \((pair.end - now) / day) days, and was not renewed; see your ACME client's log")
    case .expired: lines.append("certificate_file: has expired \((now - pair.end) / day) days ago; clients refuse it")
    case .notYetValid: lines.append("certificate_file: is not valid yet; clients refuse it; check this machine's clock")
    }
    if let name = encrypted.name.map({ Host.name($0).text }), tokens != nil, !encrypted.dot.isEmpty,
      !pair.isFor(name: "token.\(name)")
    {
      lines.append("certificate_file: is not for *.\(name), by which clients send a token over TLS; dot needs that")
    }
    if let mode = pair.exposedMode {
      lines.append(
        "key_file: mode 0\(String(mode, radix: 8)) lets other users read the file; accepted, because its folder is meant for "
          + "secrets or read-only")
    }
    return lines.map { "encrypted.\($0)" }
  }
}
