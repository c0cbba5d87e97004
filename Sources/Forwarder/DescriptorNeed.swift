// DescriptorNeed.swift -- how many descriptors a configuration may need, for a warning before they run out.

import Configuration

extension Configuration {
  /// Descriptors that may be open at once: a socket for each question that LocalDNS is asked, in flight or after it has
  /// lost its place, and all else.
  public var descriptorNeed: Int {
    // Old connections go on to their end beside the ones that replace them.
    let connections = providers.reduce(0) { $0 + $1.servers.count * 2 * $1.connections }
    // On each address UDP, TCP and the reserve of TCP.
    return 2 * listen.maxInFlight + listen.tcpConnections + connections + 3 * listen.addresses.count
      + Self.ownDescriptors + httpDescriptors
  }

  /// Each HTTP server has its socket and its reserve, its connections, and for a moment one that comes beyond them.
  private var httpDescriptors: Int {
    [control.socket != nil, web.address != nil].count { $0 } * (Self.httpConnections + 3)
  }

  /// Connections to the control socket, or to `web.address`, at once.
  public static let httpConnections = 32

  /// Standard streams, loops, and files that are read now and then.
  private static let ownDescriptors = 32
}
