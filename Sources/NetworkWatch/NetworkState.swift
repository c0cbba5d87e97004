// NetworkState.swift -- the known links, addresses and routes, and which events change them.
//
// Does no I/O except in `read`. Many of the kernel's events change nothing for the daemon: lifetimes that each router
// advertisement renews, cached routes, ports of containers. An event counts only if it changes the state here.

import CNetlink
import DNSWire

/// The part of the machine's network that matters to open connections.
struct NetworkState {
  /// Maximum addresses, and maximum routes. Beyond it only default routes are added: such a machine is a router, whose
  /// table changes continuously.
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

  /// The key by which `ip route replace` replaces routes.
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

  init() {}

  /// The default routes of every table, because a VPN may use its own table.
  var defaultRoutes: DefaultRoutes { DefaultRoutes(routes: routes.filter { $0.key.destination.length == 0 }) }

  /// Whether there is a default route of a family that packets can take.
  func hasDefaultRoute(isIPv6: Bool) -> Bool {
    routes.contains { route in
      route.key.destination.length == 0 && route.key.destination.address.isIPv6 == isIPv6
        && route.value.contains { $0.kind == UInt8(RTN_UNICAST) }
    }
  }

  /// The machine's relevant addresses.
  var ownAddresses: Set<IPAddress> { Set(addresses.keys.map(\.address)) }

  /// Reads the current state from the kernel.
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

  /// Applies an event and returns what it changes, usually nothing.
  mutating func apply(_ message: NetlinkMessage) -> NetworkChange {
    switch message.type {
    case RTM_NEWLINK: LinkMessage(message).map { add($0) } ?? []
    case RTM_DELLINK: LinkMessage(message).map { remove($0) } ?? []
    case RTM_NEWADDR: AddressMessage(message).map { add($0) } ?? []
    case RTM_DELADDR: AddressMessage(message).map { remove($0) } ?? []
    case RTM_NEWROUTE: RouteMessage(message).map { add($0, replacing: message.flags & Int(NLM_F_REPLACE) != 0) } ?? []
    case RTM_DELROUTE: RouteMessage(message).map { remove($0) } ?? []
    default: []
    }
  }
}

/// A comparable set of default routes.
struct DefaultRoutes: Equatable, Sendable {
  fileprivate var routes: [NetworkState.RouteKey: Set<NetworkState.RouteMeaning>] = [:]
}

// Links: one without an address carries no traffic of ours, for example a container's port of a bridge.
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

// Addresses: no loopback and no link-local ones, and only after duplicate address detection (RFC 4862).
extension NetworkState {
  /// The flags that influence the kernel's choice of a source address.
  private static let meaning = UInt32(IFA_F_DEPRECATED | IFA_F_SECONDARY)

  private func concerns(_ address: AddressMessage) -> Bool {
    if isLoopback(address.index) || address.scope >= RT_SCOPE_HOST.rawValue { return false }
    return !(address.address.isIPv6 && address.scope == RT_SCOPE_LINK.rawValue)
  }

  private mutating func add(_ address: AddressMessage) -> NetworkChange {
    // A known address that becomes tentative again means that its link came back, which the link reports.
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

// Routes: to more than one host, of any table except the local table, which lists our own addresses.
extension NetworkState {
  private func concerns(_ route: RouteMessage) -> Bool {
    let address = route.destination.address
    guard !route.isCloned, route.table != RT_TABLE_LOCAL.rawValue, route.destination.length < address.octets.count * 8,
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
