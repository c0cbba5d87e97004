// JDCloud.swift -- the keys of kind "jdcloud": account and key.

import Ciphers

extension Configuration {
  /// An account of JD Cloud HTTPDNS.
  public struct JDCloudAccount: Concealed, Hashable, Sendable {
    /// Account ID; always needed. Part of the path.
    public var accountID: String
    /// Key for signatures; always needed. Never sent.
    public var key: Secret

    public init(accountID: String, key: Secret) {
      self.accountID = accountID
      self.key = key
    }
  }
}

extension Configuration.JDCloudAccount {
  /// The keys that identify the account to the provider.
  static let accountKeys = ["account_id", "key"]

  /// The account in the fingerprints of cached answers.
  var meaning: String { "account=\(accountID)" }

  /// The path of the API.
  public var path: String { "/v1/\(accountID)/d" }

  /// Reads the account of a provider. After a mistake, its values stay empty.
  init(from reader: TableReader) {
    self.init(accountID: "", key: Secret(""))
    reader.require("account_id", allowed: "the id of the account in JD Cloud's console")
    reader.read("account_id", &accountID, .identifier)
    key = reader.requiredSecret("key", of: "kind \"jdcloud\"")
  }
}

extension Configuration.Provider {
  /// Reads the keys of kind "jdcloud".
  mutating func readJDCloud(from reader: TableReader) {
    let account = Configuration.JDCloudAccount(from: reader)
    kind = .jdcloud(account)
    // No document says whether the service speaks TLS.
    scheme = .http
    reader.read("scheme", &scheme, .choice)
    var endpoint = ProviderEndpoint(url: .jdcloud.with(scheme).with(path: account.path))
    endpoint.name = nil
    readServers(at: endpoint, from: reader)
  }
}

extension ProviderURL {
  /// The address of the documents' samples.
  static let jdcloud = ProviderURL(text: "http://103.224.222.208/")!
}
