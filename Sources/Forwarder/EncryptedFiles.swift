// EncryptedFiles.swift -- the files that `[encrypted]` names, read and judged: certificate, key and tokens.
//
// At the start and in `check` a fault is a mistake of the configuration. While the daemon runs, the files in use stay.

import Configuration
import Frontend
import Streams

/// What the encrypted listeners need besides the configuration.
public struct EncryptedFiles: Sendable {
  /// The certificate with its key; nil without `dot` and `doh`.
  public private(set) var pair: CertificatePair?
  /// The tokens; nil without `tokens_file`, so that clients need none.
  public let tokens: TokenList?
  private let encrypted: Configuration.Encrypted
  /// How many files were in use before these; counted by `EncryptedSide`.
  var number = 0

  /// What is wrong with the files.
  public struct Faults: Error, Hashable, Sendable {
    /// The fault of certificate and key: key, path, what is wrong, what is expected.
    var pair: String?
    /// That of the tokens, in the same form.
    var tokens: String?

    /// For the log; empty if both can be used.
    public var lines: [String] { [pair, tokens].compactMap { $0 } }
  }

  /// Reads the files. Blocks, so do not call it on a loop.
  ///
  /// - Parameter environment: gives `$CREDENTIALS_DIRECTORY`, from where files of any mode are accepted.
  public init(
    _ encrypted: Configuration.Encrypted, environment: Configuration.Environment = Configuration.processEnvironment
  ) throws(Faults) {
    let (files, faults) = EncryptedFiles.read(encrypted, environment, instead: nil)
    guard faults == Faults() else { throw faults }
    self = files
  }

  /// The result of reading the files again.
  struct Renewal: Sendable {
    /// What is to be used from now on.
    let files: EncryptedFiles
    /// Why others are not.
    let faults: Faults
    /// The number of the files that stay where there is a fault.
    let replaced: Int
  }

  /// Reads the files again: what cannot be used stays as it is here. Blocks, so do not call it on a loop.
  ///
  /// - Parameter now: seconds since 1970. A certificate that has expired does not take the place of another one.
  func renewed(
    _ encrypted: Configuration.Encrypted, at now: Int64,
    environment: Configuration.Environment = Configuration.processEnvironment
  ) -> Renewal {
    var (files, faults) = EncryptedFiles.read(encrypted, environment, instead: self)
    if let new = files.pair, let old = pair, new.state(at: now) == .expired, !new.isEqual(old) {
      files.pair = old
      faults.pair = "encrypted.certificate_file: has expired" + EncryptedFiles.stays
    }
    return Renewal(files: files, faults: faults, replaced: number)
  }

  private init(_ pair: CertificatePair?, _ tokens: TokenList?, _ encrypted: Configuration.Encrypted) {
    (self.pair, self.tokens, self.encrypted) = (pair, tokens, encrypted)
  }

  private static func days(_ seconds: Int64) -> String {
    let days = seconds / 86_400
    return days == 1 ? "1 day" : "\(days) days"
  }

  private static let stays = "; the file before it stays in use"

  /// - Parameter old: has what is used in place of what cannot be.
  private static func read(
    _ encrypted: Configuration.Encrypted, _ environment: Configuration.Environment, instead old: EncryptedFiles?
  ) -> (files: EncryptedFiles, faults: Faults) {
    let credentials = environment("CREDENTIALS_DIRECTORY")
    var faults = Faults()
    var pair: CertificatePair?
    if encrypted.usesCertificate, let certificateFile = encrypted.certificateFile, let keyFile = encrypted.keyFile {
      do throws(CertificateFault) {
        pair = try CertificatePair(
          certificateFile: certificateFile, keyFile: keyFile, name: encrypted.name.map { Host.name($0).text },
          credentials: credentials)
      } catch {
        pair = old?.pair
        let isKey = error.file == .key
        let place = isKey ? "key_file: \(keyFile)" : "certificate_file: \(certificateFile)"
        faults.pair = "encrypted.\(place): \(error)" + (old == nil ? "" : EncryptedFiles.stays)
      }
    }
    var tokens: TokenList?
    if encrypted.hasListeners, let path = encrypted.tokensFile {
      do throws(TokenList.Fault) {
        tokens = try TokenList(path: path, credentials: credentials)
      } catch {
        // Fewer clients than were meant, not more.
        tokens = old?.tokens ?? TokenList()
        let rest = old?.tokens == nil ? "; until it can be used, no client is accepted" : EncryptedFiles.stays
        faults.tokens = "encrypted.tokens_file: \(path): \(error)" + (old == nil ? "" : rest)
      }
    }
    return (EncryptedFiles(pair, tokens, encrypted), faults)
  }

  /// What clients refuse, or soon will, a line for each key.
  ///
  /// - Parameter now: seconds since 1970.
  public func warnings(at now: Int64) -> [String] {
    var lines: [String] = []
    if let tokens, tokens.labels.isEmpty { lines.append("tokens_file: has no token, so that no client is accepted") }
    guard let pair else { return lines.map { "encrypted.\($0)" } }
    switch pair.state(at: now) {
    case .valid: break
    case .endsSoon:
      lines.append(
        "certificate_file: ends in \(EncryptedFiles.days(pair.end - now)), and was not renewed; see your ACME client's log"
      )
    case .expired:
      lines.append("certificate_file: has expired \(EncryptedFiles.days(now - pair.end)) ago; clients refuse it")
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
