// DoH.swift -- the keys of kinds "doh" and "json": URL and method.

extension Configuration {
  /// The HTTP method of RFC 8484 transfers.
  public enum DoHMethod: String, CaseIterable, Hashable, Sendable {
    /// The query is the body: URLs are short, and names do not appear in the logs of proxies.
    case post
    /// The query is in the URL: HTTP caches can answer.
    case get
  }
}

extension Configuration.Provider {
  /// Reads the keys of kind "doh".
  mutating func readDoH(from reader: TableReader) {
    /// HTTP method; with `get`, caches on the path can answer.
    var method = Configuration.DoHMethod.post
    reader.read("method", &method, .choice)
    kind = .doh(method: method)
    readServers(at: givenEndpoint(.googleDoH, from: reader), from: reader)
  }

  /// Reads the keys of kind "json".
  mutating func readJSON(from reader: TableReader) {
    kind = .json
    readServers(at: givenEndpoint(.googleJSON, from: reader), from: reader)
  }

  /// The endpoint at the file's `url`; `standard` if the file has none.
  func givenEndpoint(_ standard: ProviderURL, from reader: TableReader) -> ProviderEndpoint {
    /// URL of the service.
    var url = standard
    reader.read("url", &url, .providerURL)
    return endpoint(at: url, from: reader)
  }

  /// The endpoint at the URL that was read or is the default.
  func endpoint(at url: ProviderURL, from reader: TableReader) -> ProviderEndpoint {
    var scheme = url.scheme
    reader.read("scheme", &scheme, .choice)
    if scheme != url.scheme, reader.isGiven("url"), reader.isSound("url") {
      reader.refuse("scheme", is: "contradicts url", allowed: "\"\(url.scheme)\", or no scheme")
    } else if scheme != url.scheme, !reader.isGiven("url") {
      reader.refuse(
        "scheme", is: "contradicts the default url \(url)", allowed: "a url that begins with \(scheme)://")
    }
    return ProviderEndpoint(url: url, isURLGiven: true)
  }
}

extension ProviderURL {
  static let googleJSON = ProviderURL(text: "https://dns.google/resolve")!
  static let googleDoH = ProviderURL(text: "https://dns.google/dns-query")!
}
