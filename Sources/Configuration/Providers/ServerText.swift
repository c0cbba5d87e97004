// ServerText.swift -- one entry of a provider's `servers`.

import DNSWire

/// An entry of `servers` as written in the file.
enum ServerText: Hashable {
  /// An address or a name, with or without a port.
  case host(Host, port: UInt16?)
  /// A whole URL.
  case url(ProviderURL)

  /// The server; parts that the entry leaves out come from the provider's URL.
  ///
  /// - Parameter tlsName: the name in the certificate of a server given by address; nil means that address.
  func server(of base: ProviderURL, tlsName: String?) -> Configuration.Server {
    switch self {
    case .host(let host, let port): ServerText.server(host, port ?? base.port, base.scheme, tlsName, base.path)
    case .url(let url): ServerText.server(url.host, url.port, url.scheme, tlsName, url.path)
    }
  }

  /// The certificate of a server given by name is checked against that name, that of an address against `tlsName`.
  private static func server(
    _ host: Host, _ port: UInt16, _ scheme: Scheme, _ tlsName: String?, _ path: String
  ) -> Configuration.Server {
    let name = host.isName ? host.text : tlsName ?? host.text
    return Configuration.Server(host: host, port: port, scheme: scheme, tlsName: name, path: path)
  }
}

extension Form where Result == ServerText {
  /// A server. URLs are allowed only for kinds with a `url` key.
  static func server(allowsURL: Bool) -> Form {
    Form("address[:port], [IPv6]:port or name[:port]" + (allowsURL ? ", or a URL without user and query" : "")) {
      value in
      guard let line = value.line else { return nil }
      if line.contains("://") { return allowsURL ? ProviderURL(text: line).map { .url($0) } : nil }
      guard let (host, port) = splitPort(line), let host = Host(text: host) else { return nil }
      return .host(host, port: port)
    }
  }
}
