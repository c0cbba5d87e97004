// Volcengine.swift -- the keys of kind "volcengine": account and secret key.

extension Configuration.Provider {
  /// Reads the keys of kind "volcengine". After a mistake, the values of the account stay empty.
  mutating func readVolcengine(from reader: TableReader) {
    /// Account ID; always needed. Sent as `account_id`.
    var accountID = ""
    reader.require("account_id", allowed: "the id of the account in Volcengine's console")
    reader.read("account_id", &accountID, .identifier)
    /// Key for signatures; always needed.
    let secretKey = reader.requiredSecret("secret_key", of: "kind \"volcengine\"")
    kind = .volcengine(Configuration.SecretAccount(id: accountID, secret: secretKey))
    reader.read("scheme", &scheme, .choice)
    readServers(at: ProviderEndpoint(url: .volcengine.with(scheme)), from: reader)
  }
}

extension ProviderURL {
  /// The service has no published addresses: its name is resolved by `bootstrap` or LocalDNS.
  static let volcengine = ProviderURL(text: "https://httpdns.volcengineapi.com/resolve")!
}
