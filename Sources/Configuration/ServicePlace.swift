// ServicePlace.swift -- where a kind's service is, and what the file's servers, scheme and names make of that.

import DNSWire

/// Where a service is as long as the file says nothing else.
struct ServicePlace {
  /// Transport, host, port and path.
  var url: ServiceURL
  /// The servers that are asked; nil means the known addresses of the URL's host, or that host.
  var addresses: [Host]?
  /// The name in the certificate of a server that is an address; nil means that address.
  var name: String?
  /// Whether the file gives the URL: then it may give URLs of servers too.
  let isURLGiven: Bool

  /// A place at that URL.
  init(url: ServiceURL, addresses: [Host]? = nil, isURLGiven: Bool = false) {
    self.url = url
    self.addresses = addresses
    self.name = url.host.text
    self.isURLGiven = isURLGiven
  }

  /// The servers that are asked where the file names none.
  ///
  /// - Parameter tlsName: what the file says of names in certificates.
  func servers(tlsName: String?) -> [Configuration.Server] {
    let hosts = addresses ?? ServicePlace.knownAddresses(of: url.host) ?? [url.host]
    return hosts.map { host in
      Configuration.Server(
        host: host, port: url.port, scheme: url.scheme, tlsName: tlsName ?? name ?? host.text, path: url.path)
    }
  }

  /// Addresses that public services publish, so that no name has to be found before the first transfer.
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
  /// Fills in where transfers go.
  mutating func readServers(at place: ServicePlace, from reader: TableReader) {
    scheme = place.url.scheme
    path = place.url.path
    var givenName = ""
    reader.read("tls_name", &givenName, .tlsName)
    let tlsName = givenName.isEmpty ? place.name : givenName
    servers = place.servers(tlsName: givenName.isEmpty ? nil : givenName)
    var texts: [ServerText] = []
    reader.read("servers", &texts, .distinctList(of: .server(allowsURL: place.isURLGiven), atLeast: 1))
    if !texts.isEmpty { servers = texts.map { $0.server(of: place.url, tlsName: tlsName) } }
    self.tlsName = tlsName ?? servers[0].tlsName
  }
}

extension ServiceURL {
  /// The same service over another transport; a port that was the old scheme's becomes the new one's.
  func with(_ scheme: Scheme) -> ServiceURL {
    ServiceURL(
      scheme: scheme, host: host, port: port == self.scheme.defaultPort ? scheme.defaultPort : port, path: path)
  }

  /// The same service under another path, which begins with `/`.
  func with(path: String) -> ServiceURL { ServiceURL(scheme: scheme, host: host, port: port, path: path) }
}
