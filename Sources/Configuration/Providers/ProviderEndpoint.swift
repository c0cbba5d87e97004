// ProviderEndpoint.swift -- the servers of a provider: those built in for its kind, changed by the configuration.

import DNSWire

/// The location of a service before `servers` and `tls_name` are applied.
struct ProviderEndpoint {
  var url: ProviderURL
  /// The servers; nil means the known addresses of the URL's host or, where none are known, that host.
  var addresses: [Host]?
  /// The name in the certificate of a server given by address; nil means that address.
  var name: String?
  /// Whether the kind has a `url` key; then `servers` may hold URLs too.
  let isURLGiven: Bool

  init(url: ProviderURL, addresses: [Host]? = nil, isURLGiven: Bool = false) {
    self.url = url
    self.addresses = addresses
    self.name = url.host.text
    self.isURLGiven = isURLGiven
  }

  /// The servers if the file lists none.
  ///
  /// - Parameter tlsName: the file's `tls_name`; nil if it has none.
  func servers(tlsName: String?) -> [Configuration.Server] {
    let hosts = addresses ?? ProviderEndpoint.knownAddresses(of: url.host) ?? [url.host]
    return hosts.map { host in
      Configuration.Server(
        host: host, port: url.port, scheme: url.scheme, tlsName: tlsName ?? name ?? host.text, path: url.path)
    }
  }

  /// Published addresses of public services, which save a look-up before the first transfer.
  private static func knownAddresses(of host: Host) -> [Host]? {
    let texts: [String]? =
      switch host.text {
      case "dns.alidns.com": ["223.5.5.5", "223.6.6.6"]
      case "dns.google": ["8.8.8.8", "8.8.4.4"]
      case "cloudflare-dns.com": ["1.1.1.1", "1.0.0.1"]
      case "doh.pub": ["1.12.12.12", "120.53.53.53"]
      default: nil
      }
    return texts?.map { .address(IPAddress(text: $0)!) }
  }
}

extension Configuration.Provider {
  /// Reads the keys for servers and certificate names and fills in the servers.
  mutating func readServers(at endpoint: ProviderEndpoint, from reader: TableReader) {
    scheme = endpoint.url.scheme
    path = endpoint.url.path
    /// Name for SNI, `Host` and the certificate of servers given by address.
    var givenName = ""
    reader.read("tls_name", &givenName, .tlsName)
    let tlsName = givenName.isEmpty ? endpoint.name : givenName
    servers = endpoint.servers(tlsName: givenName.isEmpty ? nil : givenName)
    /// Servers in their order, with `json`, `doh`, `text` and `table` also as URLs.
    var texts: [ServerText] = []
    reader.read("servers", &texts, .distinctList(of: .server(allowsURL: endpoint.isURLGiven), atLeast: 1))
    if !texts.isEmpty { servers = texts.map { $0.server(of: endpoint.url, tlsName: tlsName) } }
    self.tlsName = tlsName ?? servers[0].tlsName
  }
}

extension ProviderURL {
  /// The same service over another scheme; the default port of the old scheme becomes that of the new one.
  func with(_ scheme: Scheme) -> ProviderURL {
    ProviderURL(
      scheme: scheme, host: host, port: port == self.scheme.defaultPort ? scheme.defaultPort : port, path: path)
  }

  /// The same service with another path, which begins with `/`.
  func with(path: String) -> ProviderURL { ProviderURL(scheme: scheme, host: host, port: port, path: path) }
}

extension Configuration.Family {
  /// A service's published addresses of this family, IPv4 first.
  func servers(_ ipv4: [String], _ ipv6: [String]) -> [Host] {
    let texts =
      switch self {
      case .auto: ipv4 + ipv6
      case .ipv4: ipv4
      case .ipv6: ipv6
      }
    return texts.map { .address(IPAddress(text: $0)!) }
  }
}
