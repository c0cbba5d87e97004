// StoreSettings.swift -- where a store is, and the section of the configuration that says how it is used.

import Configuration

/// The settings of a connection to the store.
public struct StoreSettings: Hashable, Sendable {
  public var address: Configuration.StoreEndpoint
  /// The host name or IP address that the store's certificate must contain, a name also for SNI; nil for no TLS, which
  /// otherwise is version 1.2 or later.
  public var tlsName: String?
  /// The number of the database. SELECT is not sent for 0, the default of every connection.
  public var database: Int
  /// Credentials, trusted certificates and timeouts. The store is used only if it answers a PING within `timeout`;
  /// `connectTimeout` is for resolving, connecting, the TLS handshake and the first replies together.
  public var fleet: Configuration.Fleet

  /// The settings of a URL and of the section that has taken its user and password.
  public init(_ url: Configuration.StoreURL, _ fleet: Configuration.Fleet) {
    address = url.endpoint
    database = url.database
    if case .host(let host, _) = address, url.scheme == .rediss { tlsName = fleet.tlsName ?? host.text }
    self.fleet = fleet
  }
}
