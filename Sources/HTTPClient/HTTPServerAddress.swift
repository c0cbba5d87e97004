// HTTPServerAddress.swift -- one server: the name in its certificate and the addresses to connect to.

import Glibc

/// The destination of transfers. Addresses are literals, so that the client never resolves a name.
public struct HTTPServerAddress: Hashable, Sendable {
  /// The supported schemes.
  public enum Scheme: String, Hashable, Sendable {
    /// HTTP/1.1 without encryption.
    case http
    /// HTTP/2 over TLS, or HTTP/1.1 if the server does not support HTTP/2.
    case https

    /// 443 for HTTPS, 80 for HTTP.
    public var defaultPort: UInt16 { self == .https ? 443 : 80 }
  }

  public let scheme: Scheme
  /// The name in `Host`, in SNI and in the certificate; a host name or an address.
  public let name: String
  /// Addresses of one or both families, in order of preference; connection setup races both families. Empty if a proxy
  /// receives a host name.
  public let addresses: [String]
  /// The host name that a proxy receives; nil if there are addresses.
  public let proxiedHost: String?
  /// The TCP port.
  public let port: UInt16

  /// Creates a server with addresses; nil if an argument is malformed or there is no address.
  ///
  /// - Parameters:
  ///   - name: nil or empty uses the first address as the name.
  ///   - addresses: literals without brackets.
  ///   - port: nil for the scheme's default.
  public init?(scheme: Scheme, name: String? = nil, addresses: [String], port: UInt16? = nil) {
    guard let first = addresses.first, addresses.allSatisfy({ Self.family(of: $0) != nil }),
      let name = Self.hostName(name ?? "")
    else { return nil }
    self.scheme = scheme
    self.name = name.isEmpty ? first : name
    self.addresses = addresses
    proxiedHost = nil
    self.port = port ?? scheme.defaultPort
  }

  /// Creates a server that only a proxy can resolve; nil if an argument is malformed.
  ///
  /// - Parameters:
  ///   - name: nil or empty uses the host as the name.
  ///   - proxiedHost: the host name that the proxy receives; not an address.
  ///   - port: nil for the scheme's default.
  public init?(scheme: Scheme, name: String? = nil, proxiedHost: String, port: UInt16? = nil) {
    guard let host = Self.hostName(proxiedHost), !host.isEmpty, Self.family(of: host) == nil,
      let name = Self.hostName(name ?? "")
    else { return nil }
    self.scheme = scheme
    self.name = name.isEmpty ? host : name
    addresses = []
    self.proxiedHost = host
    self.port = port ?? scheme.defaultPort
  }

  /// Removes the final dot of a name; nil if the name is not allowed in a URL.
  private static func hostName(_ name: String) -> String? {
    let name = name.hasSuffix(".") ? String(name.dropLast()) : name
    guard name.utf8.allSatisfy({ isNameOctet($0) }), !name.contains(":") || family(of: name) != nil else { return nil }
    return name
  }

  /// `AF_INET` or `AF_INET6` for a literal, nil for a name.
  static func family(of literal: String) -> Int32? {
    var octets = [UInt8](repeating: 0, count: 16)
    if inet_pton(AF_INET, literal, &octets) == 1 { return AF_INET }
    if inet_pton(AF_INET6, literal, &octets) == 1 { return AF_INET6 }
    return nil
  }

  /// The name as it appears in a URL, IPv6 literals in brackets.
  var authorityHost: String { Self.family(of: name) == AF_INET6 ? "[\(name)]" : name }

  /// The URL of the server's root; the target of a request replaces its path.
  var rootURL: String {
    port == scheme.defaultPort
      ? "\(scheme.rawValue)://\(authorityHost)/" : "\(scheme.rawValue)://\(authorityHost):\(port)/"
  }
}

extension HTTPServerAddress: CustomStringConvertible {
  /// The URL of the server's root.
  public var description: String { rootURL }
}

/// Whether an octet is allowed in a host name or an address literal.
private func isNameOctet(_ octet: UInt8) -> Bool {
  switch octet {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"):
    true
  default: false
  }
}
