// DescriptorNeed.swift -- how many descriptors a configuration may need, for a warning before they run out.

import Configuration
import LocalDNS

extension Configuration {
  /// Descriptors that may be open at once: the sockets of each question that LocalDNS is asked, in flight or after it has
  /// lost its place, and all else.
  package var descriptorNeed: Int {
    // Old connections go on to their end beside the ones that replace them.
    let connections = providers.reduce(0) { $0 + $1.servers.count * 2 * $1.connections }
    // On each address UDP, TCP and the reserve of TCP.
    return 2 * socketsPerQuestion * listen.maxInFlight + listen.tcpConnections + connections
      + 3 * listen.addresses.count + Self.ownDescriptors + httpDescriptors
  }

  /// Sockets of one question to LocalDNS: one for each server that keeps silent, up to a bound. How many servers a network hands
  /// out is not known.
  private var socketsPerQuestion: Int {
    let servers = ([localDNS.servers] + rules.map(\.servers)).map { list in
      list.contains(.system) ? LocalDNSClient.mostSockets : list.count
    }
    return min(max(1, servers.max() ?? 1), LocalDNSClient.mostSockets)
  }

  /// Each HTTP server has its socket and its reserve, its connections, and for a moment one that comes beyond them.
  private var httpDescriptors: Int {
    [control.socket != nil, web.address != nil].count { $0 } * (Self.httpConnections + 3)
  }

  /// Connections to the control socket, or to `web.address`, at once.
  package static let httpConnections = 32

  /// Standard streams, loops, and files that are read now and then.
  private static let ownDescriptors = 32
}
