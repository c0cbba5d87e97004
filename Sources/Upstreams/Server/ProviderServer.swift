// ProviderServer.swift -- one server of a provider, resolved first if given by name. Resolver's loop only.

import DNSWire
import EventLoop
import HTTPClient

/// A server and the transport to it.
final class ProviderServer: CustomStringConvertible {
  /// Creates the transport to a server at these addresses.
  typealias Connect = ([IPAddress]) -> (any HTTPTransport)?

  /// Why a server given by name has no transport, human-readable.
  static let notFound = "its name could not be resolved (by bootstrap, or else localdns.servers)"

  /// The address or name and the proxy, if any, human-readable.
  let description: String
  /// Whether TLS authenticates the server's responses.
  let isVerified: Bool
  private let connect: Connect
  private let lookUp: HostLookUp?
  private var transport: (any HTTPTransport)?
  /// The known addresses; empty before the name is resolved.
  private(set) var addresses: [IPAddress] = []

  /// Creates a server at fixed addresses.
  init(_ description: String, addresses: [IPAddress], isVerified: Bool = false, connect: @escaping Connect) {
    self.description = description
    self.isVerified = isVerified
    self.connect = connect
    self.addresses = addresses
    lookUp = nil
    transport = connect(addresses)
  }

  /// Creates a server that is resolved by name.
  init(_ description: String, lookUp: HostLookUp, isVerified: Bool = false, connect: @escaping Connect) {
    self.description = description
    self.isVerified = isVerified
    self.connect = connect
    self.lookUp = lookUp
  }

  /// Renews connections, which may be dead on the new network, and makes the next use look up the name again.
  func networkHasChanged() {
    lookUp?.expire()
    transport?.renewConnections()
  }

  /// Makes the next use look up the name again after a connection failed or nothing was received, since the name may
  /// have other addresses now. Does nothing for a server given by address.
  func connectionFailed(now: BootInstant) { lookUp?.expire(after: now) }

  /// Returns the transport after resolving the name if necessary; nil if that fails within `timeout`.
  func transport(timeout: Duration) async -> (any HTTPTransport)? {
    guard let lookUp else { return transport }
    // The same addresses in another order are no reason to replace the connections.
    if let found = await lookUp.addresses(timeout: timeout), transport == nil || Set(found) != Set(addresses),
      let fresh = connect(found)
    {
      addresses = found
      transport = fresh
    }
    return transport
  }
}
