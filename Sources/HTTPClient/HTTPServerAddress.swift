// HTTPServerAddress.swift -- one server: the name its certificate must bear, and the addresses where it is reached.

import Glibc

/// Where transfers go. The addresses are literals, so no name is ever looked up here.
public struct HTTPServerAddress: Hashable, Sendable {
  /// The schemes that are spoken.
  public enum Scheme: String, Hashable, Sendable {
    /// HTTP/1.1 in the clear.
    case http
    /// HTTP/2 over TLS, or HTTP/1.1 where the server has no HTTP/2.
    case https

    /// The port when none is given.
    public var defaultPort: UInt16 { self == .https ? 443 : 80 }
  }

  /// The scheme.
  public let scheme: Scheme
  /// The name in `Host`, in SNI and in the certificate; a name or an address.
  public let name: String
  /// Addresses of one or both families, in the order of preference; both families are raced while connecting. None where a
  /// proxy is told a host's name.
  public let addresses: [String]
  /// The name that a proxy receives; nil where there are addresses.
  public let proxiedHost: String?
  /// The TCP port.
  public let port: UInt16

  /// A server.
  ///
  /// - Parameters:
  ///   - name: nil or empty where the first address is the name.
  ///   - addresses: literals without brackets; nil is returned where one is something else, or there is none.
  ///   - port: nil for the scheme's own.
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

  /// A server that only a proxy can find, by its name.
  ///
  /// - Parameters:
  ///   - name: nil or empty where the host is the name.
  ///   - proxiedHost: what the proxy receives; nil is returned where it cannot be a host's name.
  ///   - port: nil for the scheme's own.
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

  /// A name without its final dot; nil where it could not stand in a URL.
  private static func hostName(_ name: String) -> String? {
    let name = name.hasSuffix(".") ? String(name.dropLast()) : name
    guard name.utf8.allSatisfy({ isNameOctet($0) }), !name.contains(":") || family(of: name) != nil else { return nil }
    return name
  }

  /// `AF_INET` or `AF_INET6` of a literal, nil for a name.
  static func family(of literal: String) -> Int32? {
    var octets = in6_addr()
    if inet_pton(AF_INET, literal, &octets) == 1 { return AF_INET }
    if inet_pton(AF_INET6, literal, &octets) == 1 { return AF_INET6 }
    return nil
  }

  /// The name as it stands in a URL.
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

/// Whether an octet may stand in a host name or an address literal.
private func isNameOctet(_ octet: UInt8) -> Bool {
  switch octet {
  case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"):
    true
  default: false
  }
}
