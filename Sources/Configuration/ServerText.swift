// ServerText.swift -- one entry of a provider's `servers`.

import DNSWire

/// An entry of `servers` as it stands in the file.
enum ServerText: Hashable {
  /// An address or a name, with or without a port.
  case host(Host, port: UInt16?)
  /// A whole URL.
  case url(ServiceURL)

  /// The server, with what the entry does not say taken from the provider's URL.
  ///
  /// - Parameter tlsName: the name in the certificate of an address; nil means that address.
  func server(of base: ServiceURL, tlsName: String?) -> Configuration.Server {
    switch self {
    case .host(let host, let port):
      ServerText.server(host, port ?? base.port, base.scheme, tlsName, base.path)
    case .url(let url): ServerText.server(url.host, url.port, url.scheme, tlsName, url.path)
    }
  }

  /// A server given by name has its certificate under that name; one given by address under the provider's.
  private static func server(
    _ host: Host, _ port: UInt16, _ scheme: Scheme, _ tlsName: String?, _ path: String
  ) -> Configuration.Server {
    let name = host.isName ? host.text : tlsName ?? host.text
    return Configuration.Server(host: host, port: port, scheme: scheme, tlsName: name, path: path)
  }
}

extension Form where Result == ServerText {
  /// A server, by URL only where the kind has a path of its own.
  static func server(allowsURL: Bool) -> Form {
    Form("address[:port], [IPv6]:port or name[:port]" + (allowsURL ? ", or a URL without user and query" : "")) {
      value in
      guard let line = value.line else { return nil }
      if line.contains("://") { return allowsURL ? ServiceURL(text: line).map { .url($0) } : nil }
      guard let (host, port) = splitPort(line), let host = Host(text: host) else { return nil }
      return .host(host, port: port)
    }
  }
}
