// DescriptorNeed.swift -- how many file descriptors a configuration may need, for a warning before they run out.

import Configuration
import LocalDNS

extension Configuration {
  /// Descriptors that may be open at once: the sockets of each question to LocalDNS, in flight or after it has lost its
  /// place, and all others.
  package var descriptorNeed: Int {
    // Old connections finish beside the ones that replace them.
    let connections = providers.reduce(0) { $0 + $1.servers.count * 2 * $1.connections }
    // For each address: UDP, TCP, and the reserve of TCP.
    return 2 * socketsPerQuestion * listen.maxInFlight + listen.tcpConnections + connections
      + 3 * listen.addresses.count + Self.ownDescriptors + httpDescriptors + encryptedDescriptors
  }

  /// For each address its socket and its reserve, the connections, those whose PROXY header is awaited, and those of the loop.
  private var encryptedDescriptors: Int {
    guard encrypted.hasListeners else { return 0 }
    let addresses = encrypted.dot.count + encrypted.doh.count + encrypted.dohPlain.count
    return 2 * addresses + encrypted.connections * (encrypted.proxyProtocol.isEmpty ? 1 : 2) + 4
  }

  /// Sockets of one question to LocalDNS: one for each server that does not answer, up to a bound. How many servers a
  /// network provides is not known.
  private var socketsPerQuestion: Int {
    let servers = ([localDNS.servers] + rules.map(\.servers)).map { list in
      list.contains(.system) ? LocalDNSClient.mostSockets : list.count
    }
    return min(max(1, servers.max() ?? 1), LocalDNSClient.mostSockets)
  }

  /// For each HTTP server: its socket, its reserve, its connections, and briefly one connection beyond them.
  private var httpDescriptors: Int {
    [control.socket != nil, web.address != nil].count { $0 } * (Self.httpConnections + 3)
  }

  /// The most connections at once to the control socket, or to `web.address`.
  package static let httpConnections = 32

  /// Standard streams, event loops, and files that are read occasionally.
  private static let ownDescriptors = 32
}
