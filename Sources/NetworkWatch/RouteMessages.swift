// RouteMessages.swift -- parses the messages of rtnetlink(7) about links, addresses, routes and neighbours.

import CNetlink
import DNSWire
import Glibc

/// A network interface: RTM_NEWLINK or RTM_DELLINK.
struct LinkMessage: Equatable {
  let index: Int32
  /// IFF_ bits.
  let flags: UInt32
  var name = ""

  var isLoopback: Bool { flags & UInt32(IFF_LOOPBACK) != 0 }
  /// Whether the interface is up and has a carrier, as far as the kernel knows.
  var isRunning: Bool {
    let both = UInt32(IFF_UP | IFF_RUNNING)
    return flags & both == both
  }
  /// Whether neighbours have link-layer addresses; false for tunnels and point-to-point links.
  var hasNeighbours: Bool { flags & UInt32(IFF_NOARP | IFF_POINTOPOINT) == 0 }

  /// Nil for any other message, and for a bridge's view of its ports (another address family).
  init?(_ message: NetlinkMessage) {
    guard message.type == RTM_NEWLINK || message.type == RTM_DELLINK,
      let fixed = message.body.load(as: ifinfomsg.self), Int32(fixed.ifi_family) == AF_UNSPEC, fixed.ifi_index > 0
    else { return nil }
    index = fixed.ifi_index
    flags = fixed.ifi_flags
    for (type, value) in NetlinkAttributes(of: message.body, behind: ifinfomsg.self) where type == IFLA_IFNAME {
      name = value.text
    }
  }
}

/// An address of an interface: RTM_NEWADDR or RTM_DELADDR.
struct AddressMessage: Equatable {
  let index: Int32
  let address: IPAddress
  let prefix: IPPrefix
  /// IFA_F_ bits.
  let flags: UInt32
  /// RT_SCOPE_: 0 is global, 253 the link, 254 the host.
  let scope: UInt8

  /// Nil for any other message, and for an address whose length does not match its family.
  init?(_ message: NetlinkMessage) {
    guard message.type == RTM_NEWADDR || message.type == RTM_DELADDR,
      let fixed = message.body.load(as: ifaddrmsg.self), let size = addressSize(fixed.ifa_family), fixed.ifa_index > 0
    else { return nil }
    var flags = UInt32(fixed.ifa_flags)
    var local: IPAddress?
    var other: IPAddress?
    for (type, value) in NetlinkAttributes(of: message.body, behind: ifaddrmsg.self) {
      switch type {
      // A point-to-point link of IPv4 has both attributes, and the local address is ours. IPv6 usually has only one.
      case IFA_LOCAL where value.count == size: local = IPAddress(octets: value)
      case IFA_ADDRESS where value.count == size: other = IPAddress(octets: value)
      case IFA_FLAGS: flags = value.load(as: UInt32.self) ?? flags
      default: break
      }
    }
    guard let address = local ?? other, let prefix = IPPrefix(address, length: Int(fixed.ifa_prefixlen)) else {
      return nil
    }
    index = Int32(truncatingIfNeeded: fixed.ifa_index)
    self.address = address
    self.prefix = prefix
    self.flags = flags
    scope = fixed.ifa_scope
  }
}

/// A next hop of a route.
struct NextHop: Hashable, Sendable {
  var index: Int32 = 0
  /// Nil if the destination is on the link. An IPv4 route may have an IPv6 gateway.
  var gateway: IPAddress?
}

/// A route: RTM_NEWROUTE or RTM_DELROUTE.
struct RouteMessage: Equatable {
  let table: UInt32
  let destination: IPPrefix
  /// RTN_: unicast, unreachable, local, and others.
  let kind: UInt8
  /// RTM_F_ and RTNH_F_ bits.
  let flags: UInt32
  private(set) var metric: UInt32 = 0
  /// The router preference in ICMPv6: 0 medium, 1 high, 3 low (RFC 4191).
  private(set) var preference: UInt8 = 0
  private(set) var source: IPAddress?
  /// At least one.
  private(set) var hops: [NextHop] = []

  /// Whether this is a cached copy of another route, for one destination.
  var isCloned: Bool { flags & UInt32(RTM_F_CLONED) != 0 }
  var isDead: Bool { flags & UInt32(RTNH_F_DEAD) != 0 }

  /// Nil for any other message, and for a destination whose prefix length does not match its family.
  init?(_ message: NetlinkMessage) {
    guard message.type == RTM_NEWROUTE || message.type == RTM_DELROUTE,
      let fixed = message.body.load(as: rtmsg.self), let size = addressSize(fixed.rtm_family)
    else { return nil }
    var table = UInt32(fixed.rtm_table)
    var octets = [UInt8](repeating: 0, count: size)
    var only = NextHop()
    for (type, value) in NetlinkAttributes(of: message.body, behind: rtmsg.self) {
      switch type {
      case Int(RTA_TABLE.rawValue): table = value.load(as: UInt32.self) ?? table
      case Int(RTA_DST.rawValue) where value.count == size: octets = Array(value)
      case Int(RTA_PRIORITY.rawValue): metric = value.load(as: UInt32.self) ?? metric
      case Int(RTA_PREF.rawValue): preference = value.first ?? preference
      case Int(RTA_PREFSRC.rawValue) where value.count == size: source = IPAddress(octets: value)
      case Int(RTA_OIF.rawValue): only.index = value.load(as: Int32.self) ?? 0
      case Int(RTA_GATEWAY.rawValue) where value.count == size: only.gateway = IPAddress(octets: value)
      case Int(RTA_VIA.rawValue): only.gateway = gateway(via: value)
      case Int(RTA_MULTIPATH.rawValue): hops = nextHops(value, size)
      default: break
      }
    }
    guard let destination = IPAddress(octets: octets).flatMap({ IPPrefix($0, length: Int(fixed.rtm_dst_len)) }) else {
      return nil
    }
    self.table = table
    self.destination = destination
    kind = fixed.rtm_type
    flags = fixed.rtm_flags
    if hops.isEmpty { hops = [only] }
  }
}

/// A neighbour's link-layer address: RTM_NEWNEIGH.
struct NeighbourMessage: Equatable {
  let index: Int32
  let address: IPAddress
  let linkAddress: [UInt8]

  /// Nil for any other message, and for a neighbour without a valid link-layer address.
  init?(_ message: NetlinkMessage) {
    let known = NUD_PERMANENT | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE
    guard message.type == RTM_NEWNEIGH, let fixed = message.body.load(as: ndmsg.self),
      let size = addressSize(fixed.ndm_family), Int32(fixed.ndm_state) & known != 0
    else { return nil }
    var address: IPAddress?
    var linkAddress: [UInt8] = []
    for (type, value) in NetlinkAttributes(of: message.body, behind: ndmsg.self) {
      switch type {
      case NDA_DST where value.count == size: address = IPAddress(octets: value)
      case NDA_LLADDR where value.count <= NeighbourMessage.longestLinkAddress: linkAddress = Array(value)
      default: break
      }
    }
    guard let address, !linkAddress.isEmpty else { return nil }
    index = fixed.ndm_ifindex
    self.address = address
    self.linkAddress = linkAddress
  }

  /// The kernel's own limit (MAX_ADDR_LEN), in octets.
  private static let longestLinkAddress = 32
}

/// Octets of an address of that family; nil unless it is IPv4 or IPv6.
private func addressSize(_ family: UInt8) -> Int? {
  switch Int32(family) {
  case AF_INET: 4
  case AF_INET6: 16
  default: nil
  }
}

/// Parses the gateway in RTA_VIA: its family, then its address.
private func gateway(via value: ArraySlice<UInt8>) -> IPAddress? {
  guard let family = value.load(as: UInt16.self), let size = addressSize(UInt8(truncatingIfNeeded: family)),
    value.count == 2 + size
  else { return nil }
  return IPAddress(octets: value.dropFirst(2))
}

/// Parses the next hops in RTA_MULTIPATH, up to the first malformed one.
private func nextHops(_ value: ArraySlice<UInt8>, _ size: Int) -> [NextHop] {
  var hops: [NextHop] = []
  var rest = value
  while let fixed = rest.load(as: rtnexthop.self) {
    let length = Int(fixed.rtnh_len)
    guard length >= MemoryLayout<rtnexthop>.size, length <= rest.count else { break }
    var hop = NextHop(index: fixed.rtnh_ifindex)
    for (type, value) in NetlinkAttributes(of: rest.prefix(length), behind: rtnexthop.self) {
      switch type {
      case Int(RTA_GATEWAY.rawValue) where value.count == size: hop.gateway = IPAddress(octets: value)
      case Int(RTA_VIA.rawValue): hop.gateway = gateway(via: value)
      default: break
      }
    }
    hops.append(hop)
    rest = rest.dropFirst((length + 3) & ~3)
  }
  return hops
}
