// NetworkFooting.swift -- the state of the network that open connections depend on.

import CNetlink
import DNSWire
import EventLoop
import Glibc

/// The network state that matters to connections to certain destinations.
public struct NetworkFooting: Sendable {
  /// Which network the machine is on.
  public let identity: NetworkIdentity
  let defaultRoutes: DefaultRoutes
  /// The machine's addresses, except loopback and IPv6 link-local addresses.
  let addresses: Set<IPAddress>
  /// The destinations whose source addresses were looked up.
  let destinations: Set<IPAddress>
  /// The source address of packets to each destination; a destination without a route has none.
  let sources: [IPAddress: IPAddress]

  /// Whether connections that were opened on an earlier footing survive: as far as is known, the network and its
  /// default routes are the same, and so are the source addresses towards the same destinations. Interfaces of
  /// containers, unused addresses and other routes may change.
  public func carriesConnections(of earlier: NetworkFooting) -> Bool {
    guard identity == earlier.identity || identity.mayBecome(earlier.identity) || earlier.identity.mayBecome(identity),
      defaultRoutes == earlier.defaultRoutes
    else { return false }
    return destinations.allSatisfy { destination in
      let source = sources[destination]
      if earlier.destinations.contains(destination) { return source == earlier.sources[destination] }
      // A new destination: its source must be an address that existed before, or loopback.
      return source.map { earlier.addresses.contains($0) || $0.isLoopback } ?? true
    }
  }

  /// Asks the kernel for the source addresses towards destinations. Sends nothing. Any thread.
  static func sources(toward destinations: Set<IPAddress>) -> [IPAddress: IPAddress] {
    var sources: [IPAddress: IPAddress] = [:]
    for destination in destinations {
      guard let octets = source(toward: destination.octets) else { continue }
      sources[destination] = IPAddress(octets: octets)
    }
    return sources
  }

  private static func source(toward octets: [UInt8]) -> [UInt8]? {
    // Any port except 0.
    guard let destination = SocketAddress(octets: octets, port: 443) else { return nil }
    let descriptor = socket(destination.family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard destination.withSockaddr({ connect(descriptor, .init(__sockaddr__: $0), $1) }) == 0 else { return nil }
    return SocketAddress(boundTo: descriptor)?.octets
  }
}

/// Follows the footing of open connections from one check to the next.
public struct FollowedFooting: Sendable {
  private var last: NetworkFooting?

  /// Starts with a footing; nil if the kernel did not answer.
  public init(_ footing: NetworkFooting?) { last = footing }

  /// Replaces the footing with the current one. If that is nil because the kernel did not answer, the last known
  /// footing stays for the next comparison.
  ///
  /// - Returns: whether connections survive; false if that is unknown.
  public mutating func move(to now: NetworkFooting?) -> Bool {
    guard let now else { return false }
    defer { last = now }
    return last.map { now.carriesConnections(of: $0) } ?? false
  }
}

extension IPAddress {
  fileprivate var isLoopback: Bool {
    isIPv6 ? octets.dropLast().allSatisfy { $0 == 0 } && octets.last == 1 : octets[0] == 127
  }
}
