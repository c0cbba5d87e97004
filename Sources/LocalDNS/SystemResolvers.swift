// SystemResolvers.swift -- finds the resolvers that the network announces, without our own addresses.
//
// If the daemon is the machine's nameserver, `/etc/resolv.conf` has the daemon's address. Only systemd-resolved or
// NetworkManager then knows the servers that the network announced. Nothing here calls getaddrinfo.

import DNSWire
import EventLoop

/// The LocalDNS servers and search domains of this machine at one moment.
public struct SystemResolvers: Equatable, Sendable {
  /// The servers in order of preference.
  public let servers: [SocketAddress]
  /// The search domains of all files, without the root.
  public let searchDomains: [DomainName]

  /// The files to read, in this order: what the machine uses, then what the network announced to NetworkManager and
  /// systemd-resolved, in case the first file lists only this daemon. `setup resolvconf` writes the last file.
  public static let usualPaths = [
    "/etc/resolv.conf", "/run/NetworkManager/no-stub-resolv.conf", "/run/systemd/resolve/resolv.conf",
    "/var/lib/httpdnsd-setup/network.conf",
  ]

  /// Reads the files. All servers come from the first file with a usable server.
  ///
  /// - Parameters:
  ///   - paths: the files; missing files are skipped.
  ///   - listeners: the addresses where the daemon receives queries. A wildcard address stands for every address of
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

  /// Whether this is systemd-resolved's stub. It forwards to servers that may include this daemon; its servers are in
  /// resolved's own file, where they can be checked.
  private static func isStub(_ server: SocketAddress) -> Bool {
    server.octets == [127, 0, 0, 53] || server.octets == [127, 0, 0, 54]
  }
}

private let loopbackIPv6 = [UInt8](repeating: 0, count: 15) + [1]
