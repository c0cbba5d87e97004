// SystemResolvers.swift -- finds the resolvers that the network hands out, and never ourselves among them.
//
// Whoever makes this program the machine's nameserver writes its address into /etc/resolv.conf; the servers that the
// network handed out are then known to systemd-resolved or NetworkManager only. Nothing here calls getaddrinfo.

import DNSWire
import EventLoop

/// LocalDNS servers and search domains of this machine at one moment.
public struct SystemResolvers: Equatable, Sendable {
  /// The servers, in the order in which to ask them.
  public let servers: [SocketAddress]
  /// The search domains of all files, without the root.
  public let searchDomains: [DomainName]

  /// Where to look, in this order: what the machine itself uses, and what NetworkManager and systemd-resolved have been
  /// told by the network, for when the first of them names nobody but us; `setup resolvconf` writes the last.
  public static let usualPaths = [
    "/etc/resolv.conf", "/run/NetworkManager/no-stub-resolv.conf", "/run/systemd/resolve/resolv.conf",
    "/var/lib/httpdnsd-setup/network.conf",
  ]

  /// Looks at the files. The first that names a usable server gives all servers.
  ///
  /// - Parameters:
  ///   - paths: the files; those that are not there are passed over.
  ///   - listeners: where this program receives queries. A wildcard address among them stands for every address of
  ///     this machine.
  ///   - localAddresses: the addresses of this machine's interfaces, 4 or 16 octets each.
  public static func find(
    paths: [String] = usualPaths, notAt listeners: [SocketAddress],
    localAddresses: Set<[UInt8]> = LocalAddresses.all()
  ) -> SystemResolvers {
    var servers: [SocketAddress] = []
    var searchDomains: [DomainName] = []
    for file in paths.compactMap({ ResolverFile(path: $0) }) {
      if servers.isEmpty {
        servers = file.servers.filter { !isStub($0) && !isOurs($0, listeners, localAddresses) }
      }
      for name in file.searchDomains where !searchDomains.contains(name) { searchDomains.append(name) }
    }
    return SystemResolvers(servers: servers, searchDomains: searchDomains)
  }

  /// Whether a query to `server` would arrive at one of our listeners.
  public static func isOurs(
    _ server: SocketAddress, _ listeners: [SocketAddress], _ localAddresses: Set<[UInt8]> = LocalAddresses.all()
  ) -> Bool {
    guard let target = IPAddress(octets: server.octets)?.effectiveOctets else { return false }
    let isLocal = target.count == 4 && target[0] == 127 || target == loopbackIPv6 || localAddresses.contains(target)
    return listeners.contains { listener in
      guard listener.port == server.port else { return false }
      let octets = listener.octets
      let isWildcard = octets.allSatisfy { $0 == 0 }
      // An IPv6 wildcard may receive IPv4 as well.
      if isWildcard { return isLocal && target.count <= octets.count }
      return IPAddress(octets: octets)?.effectiveOctets == target
    }
  }

  /// Whether this is systemd-resolved's stub. It forwards to whatever resolved has been told, which may be us; the servers
  /// behind it stand in resolved's own file, where they can be checked.
  private static func isStub(_ server: SocketAddress) -> Bool {
    server.octets == [127, 0, 0, 53] || server.octets == [127, 0, 0, 54]
  }
}

private let loopbackIPv6 = [UInt8](repeating: 0, count: 15) + [1]
