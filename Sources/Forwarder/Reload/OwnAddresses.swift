// OwnAddresses.swift -- removes the daemon's own addresses from plain resolvers: queries to them would come back.

import Configuration
import EventLoop
import LocalDNS
import Logging
import Upstreams

extension Configuration {
  /// The configuration without plain resolvers that are the daemon itself; logs each one that it removes.
  ///
  /// Validation already refuses what the text alone shows; this also knows the machine's addresses.
  func withoutOurselves(_ listeners: [SocketAddress], _ logger: Logger) -> Configuration {
    func isOurs(_ resolver: Configuration.ResolverAddress) -> Bool {
      guard SystemResolvers.ownership(of: PlainResolver(resolver), listeners) == .ours else { return false }
      logger.warning("plain resolver \(resolver) is one of our own addresses; ignored")
      return true
    }
    func isOurServer(_ server: LocalServer) -> Bool {
      if case .resolver(let resolver) = server { isOurs(resolver) } else { false }
    }
    var configuration = self
    configuration.localDNS.servers.removeAll(where: isOurServer)
    for index in configuration.rules.indices { configuration.rules[index].servers.removeAll(where: isOurServer) }
    for index in configuration.providers.indices { configuration.providers[index].bootstrap.removeAll(where: isOurs) }
    return configuration
  }
}
