// StoreSettings.swift -- where the store is, how it is reached, and what it is shown.

/// Where a store listens.
public enum StoreAddress: Hashable, Sendable, CustomStringConvertible {
  /// A Unix socket, by its path.
  case unix(String)
  /// A host, by its name or its address as text, and a TCP port.
  case tcp(host: String, port: UInt16)

  /// `/run/redis.sock`, `redis.example:6379` or `[2001:db8::1]:6379`.
  public var description: String {
    switch self {
    case .unix(let path): path
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
  }
}

/// How the store's certificate is verified. TLS 1.2 or later is used.
public struct StoreTLS: Hashable, Sendable {
  /// The name or the IP address that the certificate must be for. A name is sent as SNI.
  public var name: String
  /// A PEM file of certificates that are trusted besides the system's; empty for none.
  public var authorityFile: String

  /// Creates TLS settings.
  public init(name: String, authorityFile: String = "") {
    self.name = name
    self.authorityFile = authorityFile
  }
}

/// A password. Every description of it is `••••`.
public struct StorePassword: Hashable, Sendable {
  /// The octets. Pass them only to the store.
  let octets: [UInt8]

  /// Creates a password; no octets stand for none.
  public init(_ octets: [UInt8]) { self.octets = octets }
}

extension StorePassword: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Always `••••`.
  public var description: String { "••••" }
  /// Always `••••`.
  public var debugDescription: String { "••••" }
  /// An empty mirror, so that dumps show nothing.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// What a connection to the store needs.
public struct StoreSettings: Hashable, Sendable {
  /// Where the store listens.
  public var address: StoreAddress
  /// How TLS is used; nil for not at all.
  public var tls: StoreTLS?
  /// The ACL user; empty for the store's default user.
  public var user = ""
  /// The password; empty for none.
  public var password = StorePassword([])
  /// The number of the database; 0 is not selected, since every connection begins there.
  public var database = 0
  /// The time within which a PING must be answered for the store to be used.
  public var timeout = Duration.milliseconds(20)
  /// The time for resolving, connecting, the TLS handshake and the first replies together.
  public var connectTimeout = Duration.milliseconds(500)

  /// Creates settings with the defaults of the other properties.
  public init(address: StoreAddress, tls: StoreTLS? = nil) {
    self.address = address
    self.tls = tls
  }
}
