// SystemResolvers.swift -- finds the resolvers that the network announces, without our own addresses.
//
// If the daemon is the machine's nameserver, `/etc/resolv.conf` has the daemon's address. Only systemd-resolved or
// NetworkManager then knows the servers that the network announced. Nothing here calls getaddrinfo.

import DNSWire
import EventLoop

/// The LocalDNS servers and search domains of this machine at one moment.
public struct SystemResolvers: Equatable, Sendable {
  /// The servers in order of preference.
  public let servers: [PlainResolver]
  /// The servers that precede them in the files and are not used.
  public let omitted: [Omission]
  /// The search domains of all files, without the root.
  public let searchDomains: [DomainName]

  /// A server that is not used.
  public struct Omission: Equatable, Sendable {
    public let server: PlainResolver
    /// Why, human-readable.
    public let reason: String
  }

  /// The files to read, in this order: what the machine uses, then what the network announced to NetworkManager and
  /// systemd-resolved, in case the first file lists only this daemon. `setup resolvconf` writes the last file.
  public static let usualPaths = [
    "/etc/resolv.conf", "/run/NetworkManager/no-stub-resolv.conf", "/run/systemd/resolve/resolv.conf",
    "/var/lib/httpdnsd-setup/network.conf",
  ]

  public init() { (servers, omitted, searchDomains) = ([], [], []) }

  /// Reads the files. All servers come from the first file with a usable server.
  ///
  /// - Parameters:
  ///   - paths: the files; missing files are skipped.
  ///   - listeners: the addresses where the daemon receives queries.
  ///   - localAddresses: the addresses of this machine's interfaces.
  public init(
    paths: [String] = usualPaths, notAt listeners: [SocketAddress],
    localAddresses: Set<SocketAddress> = LocalAddresses.all()
  ) {
    var servers: [PlainResolver] = []
    var omitted: [Omission] = []
    var searchDomains: [DomainName] = []
    for file in paths.compactMap({ ResolverFile(path: $0) }) {
      for server in servers.isEmpty ? file.servers : [] {
        if let reason = SystemResolvers.objection(to: server, listeners, localAddresses) {
          if !omitted.contains(where: { $0.server == server }) {
            omitted.append(Omission(server: server, reason: reason))
          }
        } else {
          servers.append(server)
        }
      }
      for name in file.searchDomains where !searchDomains.contains(name) { searchDomains.append(name) }
    }
    (self.servers, self.omitted, self.searchDomains) = (servers, omitted, searchDomains)
  }

  private static func objection(
    to server: PlainResolver, _ listeners: [SocketAddress], _ localAddresses: Set<SocketAddress>
  ) -> String? {
    // It forwards to servers that may include this daemon; they are in resolved's own file, where they can be checked.
    let octets = server.address.octets
    if octets == [127, 0, 0, 53] || octets == [127, 0, 0, 54] {
      return "systemd-resolved, whose file is read instead"
    }
    return ownership(of: server, listeners, localAddresses) == .ours ? "httpdnsd itself" : nil
  }

  /// Whose address a server has.
  public enum Ownership: Sendable {
    /// One of our listeners receives its queries.
    case ours
    /// A wildcard listener may receive them; a probe has to decide. Docker's resolver, 127.0.0.11, is another program
    /// although every address in 127.0.0.0/8 belongs to the machine.
    case doubtful
    /// Another program's.
    case others
  }

  /// Whether a query to `server` would arrive at one of our listeners.
  public static func ownership(
    of server: PlainResolver, _ listeners: [SocketAddress],
    _ localAddresses: Set<SocketAddress> = LocalAddresses.all()
  ) -> Ownership {
    guard let target = server.target?.effective else { return .others }
    let isLocal = target.isFirstLoopback || localAddresses.contains(target.withoutPort)
    var ownership = Ownership.others
    for listener in listeners where listener.port == target.port {
      guard listener.octets.allSatisfy({ $0 == 0 }) else {
        if listener.effective == target { return .ours }
        continue
      }
      if isLocal, listener.family == target.family { return .ours }
      // An IPv6 wildcard that the service manager has bound may receive IPv4 as well.
      let isCovered = target.octets.count <= listener.octets.count
      if isCovered, isLocal || target.octets.count == 4 && target.octets[0] == 127 { ownership = .doubtful }
    }
    return ownership
  }
}

extension SocketAddress {
  /// The address that the kernel uses instead: IPv4-mapped IPv6 becomes IPv4, the unspecified address becomes loopback.
  var effective: SocketAddress {
    guard let octets = IPAddress(octets: octets)?.effectiveOctets, octets != self.octets else { return self }
    return SocketAddress(octets: octets, port: port)!
  }

  fileprivate var withoutPort: SocketAddress {
    var address = SocketAddress(octets: octets, port: 0)!
    address.scope = scope
    return address
  }

  fileprivate var isFirstLoopback: Bool {
    octets == [127, 0, 0, 1] || octets == [UInt8](repeating: 0, count: 15) + [1]
  }
}
