// JDCloud.swift -- the keys of kind "jdcloud": account and key.

extension Configuration.SecretAccount {
  /// The path of JD Cloud's API for the account.
  public var jdcloudPath: String { "/v1/\(id)/d" }
}

extension Configuration.Provider {
  /// Reads the keys of kind "jdcloud". After a mistake, the values of the account stay empty.
  mutating func readJDCloud(from reader: TableReader) {
    /// Account ID; always needed. Part of the path.
    var accountID = ""
    reader.require("account_id", allowed: "the id of the account in JD Cloud's console")
    reader.read("account_id", &accountID, .identifier)
    /// Key for signatures; always needed.
    let key = reader.requiredSecret("key", of: "kind \"jdcloud\"")
    let account = Configuration.SecretAccount(id: accountID, secret: key)
    kind = .jdcloud(account)
    // No document says whether the service speaks TLS.
    scheme = .http
    reader.read("scheme", &scheme, .choice)
    var endpoint = ProviderEndpoint(url: .jdcloud.with(scheme).with(path: account.jdcloudPath))
    endpoint.name = nil
    readServers(at: endpoint, from: reader)
  }
}

extension ProviderURL {
  /// The address of the documents' samples.
  static let jdcloud = ProviderURL(text: "http://103.224.222.208/")!
}
