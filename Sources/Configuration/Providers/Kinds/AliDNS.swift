// AliDNS.swift -- the keys of kind "alidns": account, short answers, published servers.

import Ciphers

extension Configuration {
  /// An account of Alibaba Cloud DNS.
  public struct AliDNSAccount: Concealed, Hashable, Sendable {
    /// Account ID; with all three keys of the account requests are signed. Sent as `uid`.
    public var accountID: String
    /// AccessKey ID, the public part of the key. Sent as `ak`.
    public var accessKeyID: String
    /// AccessKey Secret, which is never sent.
    public var accessKeySecret: Secret
  }
}

extension Configuration.AliDNSAccount {
  /// The keys that identify the account to the provider.
  static let accountKeys = ["account_id", "access_key_id", "access_key_secret"]

  /// The account in the fingerprints of cached answers.
  var meaning: String { "account=\(accountID) key=\(accessKeyID)" }

  /// Reads the account of a provider; nil if none of its three keys is given. Records a mistake if only some are.
  init?(from reader: TableReader) {
    let isSecretGiven = reader.isSecretGiven("access_key_secret")
    let keys = [("account_id", reader.isGiven("account_id")), ("access_key_id", reader.isGiven("access_key_id"))]
    guard isSecretGiven || keys.contains(where: { $0.1 }) else { return nil }
    for (key, isGiven) in keys where !isGiven {
      reader.require(key, allowed: "account_id, access_key_id and access_key_secret_file together, or none (unsigned)")
    }
    if !isSecretGiven {
      reader.require(
        "access_key_secret", allowed: "access_key_secret_file, _credential or _env with account_id and access_key_id")
    }
    var (accountID, accessKeyID) = ("", "")
    reader.read("account_id", &accountID, .identifier)
    reader.read("access_key_id", &accessKeyID, .identifier)
    guard let accessKeySecret = reader.secret("access_key_secret") else { return nil }
    self.init(accountID: accountID, accessKeyID: accessKeyID, accessKeySecret: accessKeySecret)
  }
}

extension Configuration.Provider {
  /// Reads the keys of kind "alidns".
  mutating func readAliDNS(from reader: TableReader) {
    /// Whether to ask for addresses only; answers are shorter and have no TTL.
    var short = false
    /// Whether to prefer the servers that the service publishes (SRV).
    var isScheduled = false
    reader.read("short", &short, .boolean)
    reader.read("schedule", &isScheduled, .boolean)
    kind = .alidns(account: Configuration.AliDNSAccount(from: reader), short: short, isScheduled: isScheduled)
    reader.read("scheme", &scheme, .choice)
    readServers(at: ProviderEndpoint(url: .aliDNS.with(scheme)), from: reader)
  }
}

extension ProviderURL {
  static let aliDNS = ProviderURL(text: "https://dns.alidns.com/resolve")!
}
