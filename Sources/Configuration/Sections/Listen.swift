// Listen.swift -- the `[listen]` section: addresses, permitted clients, and limits.

import DNSWire

extension Configuration {
  /// Addresses, permitted clients and limits.
  public struct Listen: Hashable, Sendable {
    /// Addresses to serve UDP and TCP on; port 0 picks a free one. Never empty.
    public var addresses = [Endpoint(text: "127.0.0.1:53")!, Endpoint(text: "[::1]:53")!]
    /// Listener threads for each address; 0 means one for each core.
    public var workers = 1
    /// Clients that may ask; `"connected"` means the networks of this machine. Never empty.
    public var allow: [ClientNetwork] = [.prefix(IPPrefix(text: "127.0.0.0/8")!), .prefix(IPPrefix(text: "::1/128")!)]
    /// Largest UDP response in octets.
    public var maxUDPPayload = 1232
    /// TCP connections in all; beyond that a new one replaces an idle one.
    public var tcpConnections = 128
    /// TCP connections of one client: an IPv4 address or an IPv6 /56.
    public var tcpPerClient = 16
    /// Idle time of a TCP connection; shorter while more than half of them are open. RFC 7766 section 6.2.3.
    public var tcpIdle: Duration = .seconds(15)
    /// Questions in flight upstream; beyond that stale data or SERVFAIL.
    public var maxInFlight = 1024
    /// Questions upstream of one client in a second, while other clients ask as well; 0 means no limit.
    public var missesPerClient = 500
    /// Questions upstream about one domain in a second; 0 means no limit.
    public var missesPerDomain = 50
    /// Queries of one client in a second; 0 means no limit. Beyond it UDP gets TC and TCP waits.
    public var rateLimit = 0
  }

  /// One entry of `listen.allow`.
  public enum ClientNetwork: Hashable, Sendable {
    /// Clients with an address in this prefix.
    case prefix(IPPrefix)
    /// Clients in a network that this machine is directly connected to.
    case connected
  }
}

extension Configuration.Listen {
  mutating func read(from reader: TableReader) {
    reader.read("addresses", &addresses, .distinctList(of: .listenEndpoint(port: 53), atLeast: 1))
    reader.judge("addresses", addresses)
    reader.read("workers", &workers, .integer(0...256))
    reader.read("allow", &allow, .list(of: .clientNetwork, atLeast: 1))
    reader.read("max_udp_payload", &maxUDPPayload, .integer(512...4096))
    reader.read("tcp_connections", &tcpConnections, .integer(1...65_536))
    reader.read("tcp_per_client", &tcpPerClient, .integer(1...65_536))
    reader.read("tcp_idle", &tcpIdle, .duration(.seconds(1) ... .seconds(600)))
    reader.read("max_in_flight", &maxInFlight, .integer(1...1_000_000))
    reader.read("misses_per_client", &missesPerClient, .integer(0...1_000_000))
    reader.read("misses_per_domain", &missesPerDomain, .integer(0...1_000_000))
    reader.read("rate_limit", &rateLimit, .integer(0...1_000_000))
    for case .prefix(let prefix) in allow where prefix.length == 0 {
      reader.warn("allow", "\(prefix) allows every client: open resolvers are abused to attack others (RFC 5358)")
    }
  }
}

extension TableReader {
  /// Records addresses that cannot be bound beside a wildcard, and a wildcard that serves less than it seems to.
  func judge(_ key: String, _ addresses: [Endpoint]) {
    guard isSound(key) else { return }
    for (index, address) in addresses.enumerated() {
      guard let wildcard = addresses.first(where: { address.isCovered(by: $0) }) else { continue }
      report.refuse(
        "\(address) is already served by \(wildcard)", at: place.key(key).index(index), allowed: "remove one of them",
        .failure)
    }
    for wildcard in addresses where wildcard.isWildcard && wildcard.address.isIPv6 {
      guard !addresses.contains(where: { !$0.address.isIPv6 && $0.port == wildcard.port }) else { continue }
      warn(key, "\(wildcard) serves no client over IPv4; add \"0.0.0.0:\(wildcard.port)\" for them")
    }
  }
}

extension Form where Result == Endpoint {
  /// `address:port`. The port is required, because `::1:53` is also an address. With port 0 the kernel chooses one.
  ///
  /// - Parameter port: the port in the example that messages give.
  static func listenEndpoint(port: UInt16) -> Form {
    let allowed = "an address with a port, e.g. \"127.0.0.1:\(port)\" or \"[::1]:\(port)\""
    return Form(allowed: allowed) { value, place, report in
      if let endpoint = value.line.flatMap({ Endpoint(listening: $0) }) {
        return report.accepts(endpoint, value, at: place) ? endpoint : nil
      }
      if let port = value.line.flatMap({ portOutOfRange($0) }) {
        report.refuse(
          value, is: "has port \(port), which is out of range", at: place, allowed: "a port from 0 to 65535")
      } else {
        report.refuse(value, at: place, allowed: allowed)
      }
      return nil
    }
  }
}

extension Form where Result == Configuration.ClientNetwork {
  static var clientNetwork: Form {
    Form("\"connected\" or a prefix, e.g. \"192.0.2.0/24\"") { value in
      value.line.flatMap { Configuration.ClientNetwork(text: $0) }
    }
  }
}

extension Configuration.ClientNetwork {
  init?(text: String) {
    if text == "connected" {
      self = .connected
    } else if let prefix = IPPrefix(text: text) {
      self = .prefix(prefix)
    } else {
      return nil
    }
  }
}
