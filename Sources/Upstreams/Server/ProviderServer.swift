// ProviderServer.swift -- one server of a provider; one given by name is found before it is asked. Resolver's loop only.

import DNSWire
import EventLoop
import HTTPClient

/// A server and the transport to it.
final class ProviderServer: CustomStringConvertible {
  /// Makes the transport to a server at those addresses.
  typealias Connect = ([IPAddress]) -> (any HTTPTransport)?

  /// Why a server that is given by name has no transport, for people.
  static let notFound = "its name could not be resolved (by bootstrap, or else localdns.servers)"

  /// The address or name, and by which proxy it is reached, for people.
  let description: String
  /// Whether a response's sender is certain: over TLS.
  let isVerified: Bool
  private let connect: Connect
  private let lookUp: HostLookUp?
  private var transport: (any HTTPTransport)?
  /// Where it is, as far as that is known.
  private(set) var addresses: [IPAddress] = []

  /// A server at fixed addresses.
  init(_ description: String, addresses: [IPAddress], isVerified: Bool = false, connect: @escaping Connect) {
    self.description = description
    self.isVerified = isVerified
    self.connect = connect
    self.addresses = addresses
    lookUp = nil
    transport = connect(addresses)
  }

  /// A server that is found by its name.
  init(_ description: String, lookUp: HostLookUp, isVerified: Bool = false, connect: @escaping Connect) {
    self.description = description
    self.isVerified = isVerified
    self.connect = connect
    self.lookUp = lookUp
  }

  /// The network is another one: connections of the old one may be dead, and the name may lead elsewhere.
  func networkHasChanged() {
    lookUp?.expire()
    transport?.renewConnections()
  }

  /// No connection to its addresses was possible, or nothing came back: the name may lead elsewhere by now. For a server that
  /// is given by an address nothing follows.
  func connectionFailed(now: BootInstant) { lookUp?.expire(after: now) }

  /// The transport, once the server's addresses are known; nil where they cannot be found within `timeout`.
  func transport(timeout: Duration) async -> (any HTTPTransport)? {
    guard let lookUp else { return transport }
    // Another order of the same addresses is no reason to give up a connection.
    if let found = await lookUp.addresses(timeout: timeout), transport == nil || Set(found) != Set(addresses),
      let fresh = connect(found)
    {
      addresses = found
      transport = fresh
    }
    return transport
  }
}
