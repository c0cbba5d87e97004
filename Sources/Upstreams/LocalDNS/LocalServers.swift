// LocalServers.swift -- the addresses of the plain resolvers that a route uses.

import Configuration
import DNSWire
import EventLoop
import LocalDNS

extension [Configuration.LocalServer] {
  /// The resolvers without duplicates; none means no LocalDNS.
  ///
  /// - Parameter system: those of the network.
  package func addresses(system: [PlainResolver]) -> [PlainResolver] {
    var addresses: [PlainResolver] = []
    for server in self {
      let found =
        switch server {
        case .system: system
        case .resolver(let resolver): [PlainResolver(resolver)]
        }
      addresses += found.filter { !addresses.contains($0) }
    }
    return addresses
  }
}

extension Configuration.LocalServer {
  /// A resolver that was found.
  package init(_ resolver: PlainResolver) {
    let endpoint = Endpoint(
      address: IPAddress(octets: resolver.address.octets)!, zone: resolver.zone, port: resolver.address.port)
    self = .resolver(Configuration.ResolverAddress(endpoint, isOverTCP: resolver.isOverTCP))
  }
}

extension PlainResolver {
  /// Converts a configured resolver.
  package init(_ resolver: Configuration.ResolverAddress) {
    let endpoint = resolver.endpoint
    self.init(
      SocketAddress(octets: endpoint.address.octets, port: endpoint.port)!, zone: endpoint.zone,
      isOverTCP: resolver.isOverTCP)
  }
}

extension SocketAddress {
  /// Converts a configured endpoint; without its zone if the machine has no such interface.
  package init(_ endpoint: Endpoint) {
    self.init(octets: endpoint.address.octets, port: endpoint.port)!
    if let zone = endpoint.zone { scope = SocketAddress.interface(zone) }
  }
}
