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
  private let nat64: NAT64?
  private var transport: (any HTTPTransport)?
  /// The known addresses; empty before the name is resolved.
  private(set) var addresses: [IPAddress] = []
  /// The addresses that the transport connects to.
  private var reached: [IPAddress] = []

  /// - Parameters:
  ///   - addresses: the fixed addresses of a server that is not looked up.
  ///   - lookUp: resolves a server given by name.
  init(
    _ description: String, addresses: [IPAddress] = [], lookUp: HostLookUp? = nil, isVerified: Bool = false,
    nat64: NAT64? = nil, connect: @escaping Connect
  ) {
    self.description = description
    self.isVerified = isVerified
    self.connect = connect
    self.nat64 = nat64
    self.lookUp = lookUp
    if lookUp == nil { open(to: addresses) }
  }

  /// Creates the transport to these addresses, by the network's NAT64 where only that reaches them.
  private func open(to addresses: [IPAddress]) {
    // Those that were silent go behind the others.
    let silent = transport?.silentAddresses ?? []
    let all = nat64?.reach(addresses) ?? addresses
    let reached = all.filter { !silent.contains("\($0)") } + all.filter { silent.contains("\($0)") }
    guard let fresh = connect(reached) else { return }
    (self.addresses, self.reached, transport) = (addresses, reached, fresh)
  }

  /// When something came from it last.
  var heardAt: BootInstant { transport?.heardAt ?? BootInstant(nanoseconds: .min) }

  /// Whether there is a connection to it that carries requests.
  var isConnected: Bool { transport?.isConnected ?? false }

  /// Renews connections, which may be dead on the new network, and makes the next use look up the name again.
  func networkHasChanged() {
    lookUp?.expire()
    if let nat64, !addresses.isEmpty, Set(nat64.reach(addresses)) != Set(reached) {
      open(to: addresses)
    } else {
      transport?.renewConnections()
    }
  }

  /// Makes the next use look up the name again after a connection failed or nothing was received, since the name may
  /// have other addresses now. Does nothing for a server given by address.
  func connectionFailed(now: BootInstant) { lookUp?.expire(after: now) }

  /// Fails its transfers in flight.
  func abandon(_ failure: HTTPFailure) { transport?.abandon(failure) }

  /// Shakes hands without a request.
  ///
  /// - Returns: why that failed; nil if the server is there.
  func handshake(timeout: Duration, on loop: any Loop) async -> HTTPFailure? {
    let end = loop.now + timeout
    guard let transport = await transport(timeout: timeout), loop.now < end else {
      return HTTPFailure(.unreachable, ProviderServer.notFound)
    }
    return await transport.handshake(timeout: end - loop.now)
  }

  /// Returns the transport after resolving the name if necessary; nil if that fails within `timeout`.
  func transport(timeout: Duration) async -> (any HTTPTransport)? {
    guard let lookUp else { return transport }
    // The same addresses in another order are no reason to replace the connections.
    if let found = await lookUp.addresses(timeout: timeout), transport == nil || Set(found) != Set(addresses) {
      open(to: found)
    }
    return transport
  }
}
