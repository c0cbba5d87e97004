// Baidu.swift -- the keys of kind "baidu": account and secret.

extension Configuration.Provider {
  /// Reads the keys of kind "baidu". After a mistake, the values of the account stay empty.
  mutating func readBaidu(from reader: TableReader) {
    /// Account ID; always needed. Sent as `account_id`.
    var accountID = ""
    reader.require("account_id", allowed: "the id of the account in Baidu Cloud's console")
    reader.read("account_id", &accountID, .identifier)
    /// Key for signatures; always needed.
    let secret = reader.requiredSecret("secret", of: "kind \"baidu\"")
    kind = .baidu(Configuration.SecretAccount(id: accountID, secret: secret))
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
