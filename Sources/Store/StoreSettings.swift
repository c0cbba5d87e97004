// StoreSettings.swift -- address, TLS, credentials and timeouts of a store.

import Ciphers

public enum StoreAddress: Hashable, Sendable, CustomStringConvertible {
  /// A Unix socket, by its path.
  case unix(String)
  /// A host name or IP address as text, and a TCP port.
  case tcp(host: String, port: UInt16)

  /// `/run/redis.sock`, `redis.example:6379` or `[2001:db8::1]:6379`.
  public var description: String {
    switch self {
    case .unix(let path): path
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
  }
}

/// The settings of a connection to the store.
public struct StoreSettings: Hashable, Sendable {
  public var address: StoreAddress
  /// The host name or IP address that the store's certificate must contain, a name also for SNI; nil for no TLS, which
  /// otherwise is version 1.2 or later.
  public var tlsName: String?
  /// A PEM file of certificates that are trusted in addition to the system's; empty for none.
  public var authorityFile = ""
  /// The ACL user; empty for the store's default user.
  public var user = ""
  /// The password; empty for none.
  public var password = Secret("")
  /// The number of the database. SELECT is not sent for 0, the default of every connection.
  public var database = 0
  /// The store is used only if it answers a PING within this time.
  public var timeout = Duration.milliseconds(20)
  /// The timeout for resolving, connecting, the TLS handshake and the first replies together.
  public var connectTimeout = Duration.milliseconds(500)

  /// Creates settings; the other members have their defaults.
  public init(address: StoreAddress) { self.address = address }
}
