// Volcengine.swift -- the keys of kind "volcengine": account and secret key.

import Ciphers

extension Configuration {
  /// An account of Volcengine HTTPDNS.
  public struct VolcengineAccount: Concealed, Hashable, Sendable {
    /// Account ID; always needed. Sent as `account_id`.
    public var accountID: String
    /// Key for signatures; always needed. Never sent.
    public var secretKey: Secret

    public init(accountID: String, secretKey: Secret) {
      self.accountID = accountID
      self.secretKey = secretKey
    }
  }
}

extension Configuration.VolcengineAccount {
  /// The keys that identify the account to the provider.
  static let accountKeys = ["account_id", "secret_key"]

  /// The account in the fingerprints of cached answers.
  var meaning: String { "account=\(accountID)" }

  /// Reads the account of a provider. After a mistake, its values stay empty.
  init(from reader: TableReader) {
    self.init(accountID: "", secretKey: Secret(""))
    reader.require("account_id", allowed: "the id of the account in Volcengine's console")
    reader.read("account_id", &accountID, .identifier)
    secretKey = reader.requiredSecret("secret_key", of: "kind \"volcengine\"")
  }
}

extension Configuration.Provider {
  /// Reads the keys of kind "volcengine".
  mutating func readVolcengine(from reader: TableReader) {
    kind = .volcengine(Configuration.VolcengineAccount(from: reader))
    reader.read("scheme", &scheme, .choice)
    readServers(at: ProviderEndpoint(url: .volcengine.with(scheme)), from: reader)
  }
}

extension ProviderURL {
  /// The service has no published addresses: its name is resolved by `bootstrap` or LocalDNS.
  static let volcengine = ProviderURL(text: "https://httpdns.volcengineapi.com/resolve")!
}
