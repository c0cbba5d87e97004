// Baidu.swift -- the keys of kind "baidu": account and secret.

import Ciphers

extension Configuration {
  /// An account of Baidu Cloud HTTPDNS.
  public struct BaiduAccount: Concealed, Hashable, Sendable {
    /// Account ID; always needed. Sent as `account_id`.
    public var accountID: String
    /// Key for signatures; always needed. Never sent.
    public var secret: Secret

    public init(accountID: String, secret: Secret) {
      self.accountID = accountID
      self.secret = secret
    }
  }
}

extension Configuration.BaiduAccount {
  /// The keys that identify the account to the provider.
  static let accountKeys = ["account_id", "secret"]

  /// The account in the fingerprints of cached answers.
  var meaning: String { "account=\(accountID)" }

  /// Reads the account of a provider. After a mistake, its values stay empty.
  init(from reader: TableReader) {
    self.init(accountID: "", secret: Secret(""))
    reader.require("account_id", allowed: "the id of the account in Baidu Cloud's console")
    reader.read("account_id", &accountID, .identifier)
    secret = reader.requiredSecret("secret", of: "kind \"baidu\"")
  }
}

extension Configuration.Provider {
  /// Reads the keys of kind "baidu".
  mutating func readBaidu(from reader: TableReader) {
    kind = .baidu(Configuration.BaiduAccount(from: reader))
    reader.read("scheme", &scheme, .choice)
    readServers(
      at: ProviderEndpoint(url: .baidu.with(scheme), addresses: ProviderURL.baiduAddresses(family)), from: reader)
  }
}

extension ProviderURL {
  /// The name in the servers' certificate, which is the `Host` over http too.
  static let baidu = ProviderURL(text: "https://httpdns.baidubce.com/v4/resolve")!

  /// The published addresses of a family, IPv4 first.
  static func baiduAddresses(_ family: Configuration.Family) -> [Host] {
    family.servers(["180.76.76.200"], ["240c:4006::6666"])
  }
}
