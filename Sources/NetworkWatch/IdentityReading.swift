// IdentityReading.swift -- reads the parts of a network's identity from the kernel.

import CNetlink
import DNSWire
import Glibc

/// An identity and its unresolved part.
struct IdentityReading {
  let identity: NetworkIdentity
  /// The gateway if its link-layer address is unknown.
  let unresolved: NextHop?

  /// Uses the default route of IPv4, or without one that of IPv6.
  static func read() throws(NetworkWatchError) -> IdentityReading {
    for family in [AF_INET, AF_INET6] {
      let routes = try NetlinkRequest.routes(family, table: UInt8(RT_TABLE_MAIN.rawValue)).answer {
        RouteMessage($0).flatMap { isDefault($0, family) ? $0 : nil }
      }
      guard let route = best(routes),
        // The interface may have been removed with its route.
        let link = try NetlinkRequest.link(route.hops[0].index).answer(LinkMessage.init).first
      else { continue }
      return try IdentityReading(route, link, family)
    }
    return IdentityReading(identity: .none, unresolved: nil)
  }

  private init(identity: NetworkIdentity, unresolved: NextHop?) {
    self.identity = identity
    self.unresolved = unresolved
  }

  private init(_ route: RouteMessage, _ link: LinkMessage, _ family: Int32) throws(NetworkWatchError) {
    let hop = route.hops[0]
    let addresses = try NetlinkRequest.addresses(family, on: hop.index).answer(AddressMessage.init)
    var neighbour: NeighbourMessage?
    if let gateway = hop.gateway, link.hasNeighbours {
      neighbour = try NetlinkRequest.neighbours(gateway.isIPv6 ? AF_INET6 : AF_INET, on: hop.index).answer {
        NeighbourMessage($0).flatMap { $0.index == hop.index && $0.address == gateway ? $0 : nil }
      }.first
    }
    unresolved = hop.gateway != nil && link.hasNeighbours && neighbour == nil ? hop : nil
    identity = NetworkIdentity(
      interface: link.name, gateway: hop.gateway, gatewayLinkAddress: neighbour?.linkAddress,
      prefix: IdentityReading.prefix(route, addresses.filter { $0.index == hop.index }), isComplete: unresolved == nil)
  }

  /// Whether this is a usable default route of the main table.
  private static func isDefault(_ route: RouteMessage, _ family: Int32) -> Bool {
    route.destination.length == 0 && route.destination.address.isIPv6 == (family == AF_INET6)
      && route.table == RT_TABLE_MAIN.rawValue && Int(route.kind) == RTN_UNICAST && !route.isDead && !route.isCloned
  }

  /// The route with the lowest metric. Ties are resolved by the router preference (RFC 4191), then by the gateway's
  /// address, so that the order of learning has no influence.
  static func best(_ routes: [RouteMessage]) -> RouteMessage? {
    let rank = { (route: RouteMessage) in
      let preference = route.preference == 1 ? 0 : route.preference == 0 ? 1 : 2
      return (route.metric, preference)
    }
    return routes.min { left, right in
      if rank(left) != rank(right) { return rank(left) < rank(right) }
      return octets(left.hops[0].gateway).lexicographicallyPrecedes(octets(right.hops[0].gateway))
    }
  }

  /// The prefix of a route's source address, determined without sending a packet: the route's own source, otherwise an
  /// address on the gateway's link, otherwise a global address in preference to a unique local one (RFC 4193).
  static func prefix(_ route: RouteMessage, _ addresses: [AddressMessage]) -> IPPrefix? {
    let usable = addresses.filter {
      $0.scope < ($0.address.isIPv6 ? RT_SCOPE_LINK.rawValue : RT_SCOPE_HOST.rawValue)
        && $0.flags & UInt32(IFA_F_TENTATIVE) == 0
    }
    if let own = usable.first(where: { $0.address == route.source }) { return own.prefix }
    let rank = { (address: AddressMessage) in
      let isOnLink = route.hops[0].gateway.map { address.prefix.contains($0) } ?? false
      let isDeprecated = address.flags & UInt32(IFA_F_DEPRECATED) != 0
      return (isOnLink ? 0 : 1, isDeprecated ? 1 : 0, uniqueLocal.contains(address.address) ? 1 : 0)
    }
    return usable.min { left, right in
      if rank(left) != rank(right) { return rank(left) < rank(right) }
      return left.prefix.address.octets.lexicographicallyPrecedes(right.prefix.address.octets)
    }?.prefix
  }

  private static func octets(_ address: IPAddress?) -> [UInt8] { address?.octets ?? [] }
}

private let uniqueLocal = IPPrefix(text: "fc00::/7")!
