// ListeningAddresses.swift -- where httpdnsd listens, and which of these addresses the machine's programs ask.

import Configuration
import DNSWire
import SystemSetup

/// The addresses that httpdnsd has on a machine.
struct ListeningAddresses {
  /// What it listens on.
  let listening: [Endpoint]

  /// What systemd's socket has, where that is used on this machine; or else listen.addresses.
  ///
  /// - Parameter config: the configuration's path; nil means the usual one below the root.
  /// - Throws: where that has a mistake.
  init(config: String?, _ root: Root) throws(SetupError) {
    if root.isMachine, SystemCommand.isSocketActive {
      let lines = SystemCommand.socketAddresses.run().output.split(separator: "\n")
      let datagrams = lines.filter { $0.hasSuffix(" (Datagram)") }.compactMap { $0.split(separator: " ").first }
      listening = datagrams.compactMap { Endpoint(text: String($0)) }
      return
    }
    do throws(Mistakes) {
      listening = try Configuration.listenAddresses(path: config ?? root.file(Configuration.defaultPath))
    } catch {
      throw .refused(error.mistakes.map { "\($0)" }.joined(separator: "\n"))
    }
  }

  /// The first loopback address, port 53 before others; nil where there is none.
  var nameserver: Nameserver? {
    let loopback = listening.compactMap { endpoint -> Nameserver? in
      guard endpoint.port != 0, endpoint.isWildcard || endpoint.address.isLoopback else { return nil }
      let host = endpoint.isWildcard ? (endpoint.address.isIPv6 ? "::1" : "127.0.0.1") : "\(endpoint.address)"
      return Nameserver(host: host, port: endpoint.port)
    }
    return loopback.first { $0.port == Nameserver.standardPort } ?? loopback.first
  }

  /// The address that has 127.0.0.53 too, where systemd-resolved is asked; an IPv6 wildcard is one of IPv6 alone.
  var wildcard: String? {
    listening.first { $0.isWildcard && !$0.address.isIPv6 && $0.port == Nameserver.standardPort }.map { "\($0)" }
  }
}

extension Endpoint {
  fileprivate var isWildcard: Bool { address.octets.allSatisfy { $0 == 0 } }
}
