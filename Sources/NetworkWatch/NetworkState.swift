// NetworkState.swift -- what is known of links, addresses and routes, and which events are news.
//
// Pure. The kernel tells much that changes nothing for us: lifetimes that are renewed with every router advertisement,
// caches of routes, the ports of containers. An event counts when it makes a difference to what is known here.

import CNetlink
import DNSWire

/// The part of a machine's network that matters to somebody who has connections through it.
struct NetworkState {
  /// How many addresses and how many routes are remembered. Beyond it only default routes count: that machine is a router,
  /// whose table changes all the time.
  static let limit = 4_096

  private var links: [Int32: LinkMessage] = [:]
  private var addresses: [AddressKey: UInt32] = [:]
  private var routes: [RouteKey: Set<RouteMeaning>] = [:]
  private var routeCount = 0

  private struct AddressKey: Hashable {
    let index: Int32
    let address: IPAddress
    let length: Int
  }

  /// What `ip route replace` replaces.
  fileprivate struct RouteKey: Hashable, Sendable {
    let table: UInt32
    let destination: IPPrefix
    let metric: UInt32
  }

  fileprivate struct RouteMeaning: Hashable, Sendable {
    let kind: UInt8
    let source: IPAddress?
    let hops: [NextHop]
  }

  /// Nothing is known.
  init() {}

  /// The routes to everywhere, of every table: a VPN's may have one of its own.
  var defaultRoutes: DefaultRoutes {
    DefaultRoutes(routes: routes.filter { $0.key.destination.length == 0 })
  }

  /// The machine's addresses that matter.
  var ownAddresses: Set<IPAddress> { Set(addresses.keys.map(\.address)) }

  /// What the kernel says now.
  static func read() throws(NetworkWatchError) -> NetworkState {
    var state = NetworkState()
    try state.read()
    return state
  }

  private mutating func read() throws(NetworkWatchError) {
    for link in try NetlinkRequest.links.answer(LinkMessage.init) { links[link.index] = link }
    for family in [AF_INET, AF_INET6] {
      for address in try NetlinkRequest.addresses(family).answer(AddressMessage.init) { _ = add(address) }
      for route in try NetlinkRequest.routes(family).answer({ RouteMessage($0).flatMap { concerns($0) ? $0 : nil } }) {
        _ = add(route, replacing: false)
      }
    }
  }

  /// Takes an event; what it changes, which is mostly nothing.
  mutating func apply(_ message: NetlinkMessage) -> NetworkChange {
    switch message.type {
    case RTM_NEWLINK: LinkMessage(message).map { add($0) } ?? []
    case RTM_DELLINK: LinkMessage(message).map { remove($0) } ?? []
    case RTM_NEWADDR: AddressMessage(message).map { add($0) } ?? []
    case RTM_DELADDR: AddressMessage(message).map { remove($0) } ?? []
    case RTM_NEWROUTE:
      RouteMessage(message).map { add($0, replacing: message.flags & Int(NLM_F_REPLACE) != 0) } ?? []
    case RTM_DELROUTE: RouteMessage(message).map { remove($0) } ?? []
    default: []
    }
  }
}

/// The routes to everywhere.
struct DefaultRoutes: Equatable, Sendable {
  fileprivate var routes: [NetworkState.RouteKey: Set<NetworkState.RouteMeaning>] = [:]
}

// Links: one without an address is nobody's way to anywhere, such as a container's port of a bridge.
extension NetworkState {
  private mutating func add(_ link: LinkMessage) -> NetworkChange {
    let wasRunning = links.updateValue(link, forKey: link.index)?.isRunning ?? false
    return wasRunning != link.isRunning && hasAddress(link.index) ? .links : []
  }

  private mutating func remove(_ link: LinkMessage) -> NetworkChange {
    let wasRunning = links.removeValue(forKey: link.index)?.isRunning ?? false
    let hadAddress = hasAddress(link.index)
    addresses = addresses.filter { $0.key.index != link.index }
    return wasRunning && hadAddress ? .links : []
  }

  private func hasAddress(_ index: Int32) -> Bool { addresses.keys.contains { $0.index == index } }

  private func isLoopback(_ index: Int32) -> Bool { links[index]?.isLoopback ?? false }
}

// Addresses: not those of this machine or of a link alone, and not before they may be used (RFC 4862).
extension NetworkState {
  /// Flags whose change makes the kernel choose another source address.
  private static let meaning = UInt32(IFA_F_DEPRECATED | IFA_F_SECONDARY)

  private func concerns(_ address: AddressMessage) -> Bool {
    if isLoopback(address.index) || address.scope >= RT_SCOPE_HOST.rawValue { return false }
    return !(address.address.isIPv6 && address.scope == RT_SCOPE_LINK.rawValue)
  }

  private mutating func add(_ address: AddressMessage) -> NetworkChange {
    // A known address that is tentative again is one whose link came back: that is the link's news.
    guard concerns(address), address.flags & UInt32(IFA_F_TENTATIVE) == 0 else { return [] }
    let key = AddressKey(index: address.index, address: address.address, length: address.prefix.length)
    let flags = address.flags & NetworkState.meaning
    guard addresses[key] != flags, addresses[key] != nil || addresses.count < NetworkState.limit else { return [] }
    addresses[key] = flags
    return .addresses
  }

  private mutating func remove(_ address: AddressMessage) -> NetworkChange {
    let key = AddressKey(index: address.index, address: address.address, length: address.prefix.length)
    return addresses.removeValue(forKey: key) == nil ? [] : .addresses
  }
}

// Routes: to more than one host, of any table but the one that says which addresses are ours.
extension NetworkState {
  private func concerns(_ route: RouteMessage) -> Bool {
    let address = route.destination.address
    guard !route.isCloned, route.table != RT_TABLE_LOCAL.rawValue,
      route.destination.length < address.octets.count * 8,
      !(address.isIPv6 && (linkLocal.contains(address) || address.octets[0] == 0xFF))
    else { return false }
    switch Int(route.kind) {
    case RTN_UNICAST: return !route.hops.allSatisfy { isLoopback($0.index) }
    case RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT, RTN_THROW: return true
    default: return false
    }
  }

  private mutating func add(_ route: RouteMessage, replacing: Bool) -> NetworkChange {
    guard concerns(route) else { return [] }
    let (key, meaning) = taken(route)
    var known = routes[key] ?? []
    guard !known.contains(meaning), routeCount < NetworkState.limit || route.destination.length == 0 else { return [] }
    routeCount -= known.count
    known = replacing ? [meaning] : known.union([meaning])
    routeCount += known.count
    routes[key] = known
    return .routes
  }

  private mutating func remove(_ route: RouteMessage) -> NetworkChange {
    let (key, meaning) = taken(route)
    guard routes[key]?.remove(meaning) != nil else { return [] }
    routeCount -= 1
    if routes[key]?.isEmpty == true { routes[key] = nil }
    return .routes
  }

  private func taken(_ route: RouteMessage) -> (RouteKey, RouteMeaning) {
    (
      RouteKey(table: route.table, destination: route.destination, metric: route.metric),
      RouteMeaning(kind: route.kind, source: route.source, hops: route.hops)
    )
  }
}

private let linkLocal = IPPrefix(text: "fe80::/10")!
