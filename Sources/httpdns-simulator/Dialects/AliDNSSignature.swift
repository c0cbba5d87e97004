// AliDNSSignature.swift -- computes and checks the `key` of Alibaba's mobile resolution.

import Ciphers
import DNSWire

/// An account of the simulated service. Its description does not contain the secret.
struct Account: Sendable, CustomStringConvertible, CustomReflectable {
  let identifier: String
  let accessKeyID: String
  let accessKeySecret: String

  var description: String { "account \(identifier)" }
  var customMirror: Mirror { Mirror(self, children: ["identifier": identifier]) }
}

extension Account {
  /// The lower-case hexadecimal SHA-256 of uid, secret, ts, name and access key ID, without separators.
  func aliDNSKey(ts: [UInt8], name: [UInt8]) -> String {
    Hexadecimal.encode(
      Digest.sha256(
        Array(identifier.utf8) + Array(accessKeySecret.utf8) + ts + name + Array(accessKeyID.utf8)))
  }
}

extension Service {
  enum Verification: Equatable { case unsigned, verified, refused }

  /// Checks `ak`, `ts` and `key`: all or none must be present, `ts` within the window, `key` valid for the account
  /// `uid`.
  func verifyAliDNS(_ parameters: Parameters, name: [UInt8], now: Int64) -> Verification {
    let present = ["ak", "ts", "key"].filter { parameters.octets($0) != nil }
    guard !present.isEmpty else { return options.requiresSignature ? .refused : .unsigned }
    guard let account = accounts.first(where: { $0.identifier == parameters["uid"] }),
      parameters["ak"] == account.accessKeyID,
      let ts = parameters.octets("ts"), let seconds = secondsText(ts),
      abs(seconds.subtractingReportingOverflow(now).partialValue) <= options.signatureWindow,
      parameters["key"] == account.aliDNSKey(ts: ts, name: name)
    else { return .refused }
    return .verified
  }
}
