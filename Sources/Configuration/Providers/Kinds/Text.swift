// Text.swift -- the keys of kind "text": URL and dialect.

extension Configuration {
  /// Services that answer in plain text. They differ in what they are asked.
  public enum TextForm: String, CaseIterable, Hashable, Sendable {
    /// That of Tencent's former free service, which has IPv4 addresses only.
    case dnspod
    /// That of 114DNS.
    case oneOneFour = "114"
  }
}

extension Configuration.Provider {
  /// Reads the keys of kind "text".
  mutating func readText(from reader: TableReader) {
    /// URL of the service; always needed.
    var url = ProviderURL.dnspodText
    reader.require("url", allowed: "the URL of the service, e.g. \"\(url)\"")
    reader.read("url", &url, .providerURL)
    /// Form of requests: that of Tencent's former free service, with A only, or that of 114DNS.
    var dialect = Configuration.TextForm.dnspod
    reader.read("dialect", &dialect, .choice)
    kind = .text(dialect, url: url)
    readServers(at: endpoint(at: url, from: reader), from: reader)
  }
}

extension ProviderURL {
  /// Tencent's former free service, which it keeps for debugging.
  static let dnspodText = ProviderURL(text: "http://119.29.29.29/d")!
}
