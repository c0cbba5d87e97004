// ListeningAddresses.swift -- finds the addresses that httpdnsd listens on, and the one that programs ask.

import Configuration
import DNSWire
import SystemSetup

struct ListeningAddresses {
  let listening: [Endpoint]

  /// Takes the addresses of httpdnsd.socket if that is active on this machine, otherwise listen.addresses.
  ///
  /// - Parameter config: the configuration's path; nil means `$HTTPDNSD_CONFIG` on this machine, or else the default
  ///   path below the root.
  /// - Throws: if the configuration has a mistake.
  init(config: String?, _ root: Root) throws(SetupError) {
    if root.isMachine, SystemCommand.isSocketActive {
      let lines = SystemCommand.socketAddresses.run().output.split(separator: "\n")
      let datagrams = lines.filter { $0.hasSuffix(" (Datagram)") }.compactMap { $0.split(separator: " ").first }
      listening = datagrams.compactMap { Endpoint(text: String($0)) }
      return
    }
    do throws(Mistakes) {
      listening = try Configuration.listenAddresses(path: config ?? ListeningAddresses.path(root))
    } catch {
      throw .refused(error.mistakes.map { "\($0)" }.joined(separator: "\n"))
    }
  }

  /// The variable belongs to this machine, so it says nothing about another root.
  private static func path(_ root: Root) -> String {
    root.isMachine ? Configuration.path(given: nil) : root.file(Configuration.defaultPath)
  }

  /// The first loopback address, preferably with port 53; nil without a loopback address.
  var nameserver: Nameserver? {
    let loopback = listening.compactMap { endpoint -> Nameserver? in
      guard endpoint.port != 0, endpoint.isWildcard || endpoint.address.isLoopback else { return nil }
      let host = endpoint.isWildcard ? (endpoint.address.isIPv6 ? "::1" : "127.0.0.1") : "\(endpoint.address)"
      return Nameserver(host: host, port: endpoint.port)
    }
    return loopback.first { $0.port == Nameserver.standardPort } ?? loopback.first
  }

  /// The IPv4 wildcard address with port 53, which includes systemd-resolved's 127.0.0.53; nil if the daemon does not
  /// listen there. The daemon's IPv6 wildcard includes no IPv4 address.
  var wildcard: String? {
    listening.first { $0.isWildcard && !$0.address.isIPv6 && $0.port == Nameserver.standardPort }.map { "\($0)" }
  }
}
