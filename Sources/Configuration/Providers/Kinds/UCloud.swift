// UCloud.swift -- the keys of kind "ucloud": account, application, nodes.

extension Configuration.Provider {
  /// Reads the keys of kind "ucloud". After a mistake, the values of the account stay empty.
  mutating func readUCloud(from reader: TableReader) {
    /// Authentication ID; always needed. Part of the path.
    var authID = ""
    reader.require("auth_id", allowed: "the authentication ID in UCloud's console")
    reader.read("auth_id", &authID, .identifier)
    /// Authentication secret, the key for signatures; always needed.
    let authSecret = reader.requiredSecret("auth_secret", of: "kind \"ucloud\"")
    /// Bundle ID or package name, if the authentication ID is that of an application.
    var appID: String?
    /// Whether to prefer the nodes that the service names for this network.
    var isScheduled = true
    reader.read("app_id", &appID, .optional(.identifier))
    reader.read("schedule", &isScheduled, .boolean)
    kind = .ucloud(
      Configuration.SecretAccount(id: authID, secret: authSecret), appID: appID, isScheduled: isScheduled)
    // No document says whether the service speaks TLS.
    scheme = .http
    reader.read("scheme", &scheme, .choice)
    readServers(at: ProviderEndpoint(url: .ucloud.with(scheme).with(path: "/\(authID)/resolve")), from: reader)
  }
}

extension ProviderURL {
  /// The base of the document. It names its addresses by its nodes only.
  static let ucloud = ProviderURL(text: "http://httpdns.ucloud.cn/")!
}
