// ServerListSource.swift -- the lists of servers that services publish for their clients.

import Configuration
import DNSWire
import HTTPMessage

/// A server that a provider announces to its clients.
public struct ListedServer: Hashable, Sendable {
  /// The address or name to connect to.
  public var host: Host
  /// The port; nil means the default port of the scheme.
  public var port: UInt16?

  /// Without a port it has the default port of the scheme.
  public init(_ host: Host, port: UInt16? = nil) {
    self.host = host
    self.port = port
  }

  /// Whether a service may name it to clients on other machines: neither `localhost` nor an address that only this machine
  /// or its link knows. A private network may have nodes of its own.
  public var mayBeRemote: Bool {
    switch host {
    case .address(let address): address.isRoutable
    case .name(let name): !".\(name.text.lowercased())".hasSuffix(".localhost.")
    }
  }
}

/// The source of such a list, in the service's dialect.
public protocol ServerListSource: Sendable {
  /// Composes the transfer that requests the list.
  ///
  /// - Parameter unixTime: seconds since 1970 on the provider's clock, for sources that sign.
  func request(unixTime: Int64) -> HTTPRequest

  /// Parses the list and its lifetime. An empty list means that the service is switched off.
  ///
  /// - Complexity: O(*n*) in the octets of the body.
  func list(from response: HTTPResponse) throws(HTTPDNSFailure) -> (servers: [ListedServer], lifetime: Duration)

  /// Whether the list is requested over TLS even if questions go over http. False by default.
  var isAlwaysEncrypted: Bool { get }

  /// Whether the configured servers answer questions behind the listed ones. True by default; if false, they do so
  /// only until the first list has come.
  var keepsConfiguredServers: Bool { get }

  /// Whether `Host` over http is the listed server's own address or name. True by default; if false, it is the
  /// service's name.
  var hasOwnHosts: Bool { get }
}

extension ServerListSource {
  public var isAlwaysEncrypted: Bool { false }
  public var keepsConfiguredServers: Bool { true }
  public var hasOwnHosts: Bool { true }
}
