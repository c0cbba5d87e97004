// NetlinkMessageTests.swift -- datagrams of the kernel, whole, cut and damaged.

import CNetlink
import DNSWire
import Glibc
import TestSupport
import Testing

@testable import NetworkWatch

@Suite struct `A netlink datagram` {
  @Test func `several messages are read one after the other`() {
    let datagram = link(2) + address("192.0.2.7/24") + route(via: "192.0.2.1")
    #expect(NetlinkMessages(datagram[...]).map(\.type) == [RTM_NEWLINK, RTM_NEWADDR, RTM_NEWROUTE])
  }

  @Test func `a message that is longer than the datagram, or than nothing, ends it`() {
    let first = link(2)
    for length: UInt32 in [0, 15, UInt32(first.count + 1), .max] {
      let second = native(length) + first.dropFirst(4)
      #expect(NetlinkMessages((first + second)[...]).map(\.type) == [RTM_NEWLINK])
    }
    #expect(NetlinkMessages([1, 2, 3]).map(\.type) == [])
  }

  @Test func `an attribute that is longer than its message, or than nothing, ends the attributes`() {
    for length: UInt16 in [0, 3, 9, .max] {
      let attributes =
        attribute(IFLA_MTU, [0, 0, 0, 1]) + native(length) + native(UInt16(IFLA_IFNAME)) + [0x78, 0, 0, 0]
      let body = withUnsafeBytes(of: ifinfomsg()) { Array($0) } + attributes
      #expect(NetlinkAttributes(of: body[...], behind: ifinfomsg.self).map(\.type) == [Int(IFLA_MTU)])
    }
  }

  @Test func `an error has its positive number for any content`() {
    let answer = { (code: Int32) in message(netlink(Int(NLMSG_ERROR), nlmsgerr(error: code, msg: nlmsghdr()))) }
    #expect(answer(-EPERM).error == EPERM)
    #expect(answer(0).error == 0)
    #expect(answer(.min).error == EINVAL)
    #expect(message(link(1)).error == nil)
  }
}

@Suite struct `What a message says` {
  @Test func `a link has a name and a state`() throws {
    let up = try #require(LinkMessage(message(link(3, "wlan0"))))
    #expect(up.index == 3 && up.name == "wlan0" && up.isRunning && up.hasNeighbours && !up.isLoopback)
    #expect(LinkMessage(message(link(3, isRunning: false)))?.isRunning == false)
    #expect(LinkMessage(message(link(3, more: IFF_POINTOPOINT)))?.hasNeighbours == false)
    #expect(LinkMessage(message(link(1, more: IFF_LOOPBACK)))?.isLoopback == true)
  }

  @Test func `a bridge's view of its port is no link`() {
    var fixed = ifinfomsg()
    fixed.ifi_family = UInt8(AF_BRIDGE)
    fixed.ifi_index = 2
    #expect(LinkMessage(message(netlink(RTM_NEWLINK, fixed))) == nil)
  }

  @Test func `an address is the local one, with its prefix and all 32 flags`() throws {
    let fixed = ifaddrmsg(ifa_family: UInt8(AF_INET), ifa_prefixlen: 32, ifa_flags: 0x80, ifa_scope: 0, ifa_index: 4)
    let line = netlink(
      RTM_NEWADDR, fixed,
      [(IFA_ADDRESS, [10, 0, 0, 2]), (IFA_LOCAL, [10, 0, 0, 1]), (IFA_FLAGS, native(UInt32(IFA_F_NOPREFIXROUTE)))])
    let parsed = try #require(AddressMessage(message(line)))
    #expect(parsed.address.description == "10.0.0.1" && parsed.prefix.description == "10.0.0.1/32")
    #expect(parsed.flags == UInt32(IFA_F_NOPREFIXROUTE) && parsed.index == 4)
    #expect(AddressMessage(message(address("2001:db8::7/64")))?.prefix.description == "2001:db8::/64")
  }

  @Test func `an address that does not fit its family is nil`() {
    var fixed = ifaddrmsg(ifa_family: UInt8(AF_INET), ifa_prefixlen: 33, ifa_flags: 0, ifa_scope: 0, ifa_index: 4)
    #expect(AddressMessage(message(netlink(RTM_NEWADDR, fixed, [(IFA_ADDRESS, [10, 0, 0, 1])]))) == nil)
    fixed.ifa_prefixlen = 24
    #expect(AddressMessage(message(netlink(RTM_NEWADDR, fixed, [(IFA_ADDRESS, octets("::1"))]))) == nil)
    fixed.ifa_family = UInt8(AF_UNIX)
    #expect(AddressMessage(message(netlink(RTM_NEWADDR, fixed, [(IFA_ADDRESS, [10, 0, 0, 1])]))) == nil)
  }

  @Test func `a route has a gateway, also of the other family, or several`() throws {
    let plain = try #require(RouteMessage(message(route("198.51.100.0/24", via: "192.0.2.1", metric: 100))))
    #expect(plain.destination.description == "198.51.100.0/24" && plain.metric == 100 && plain.table == 254)
    #expect(plain.hops == [NextHop(index: 2, gateway: IPAddress(text: "192.0.2.1"))])

    var fixed = rtmsg()
    fixed.rtm_family = UInt8(AF_INET)
    let via = netlink(
      RTM_NEWROUTE, fixed,
      [
        (Int(RTA_OIF.rawValue), native(Int32(5))),
        (Int(RTA_VIA.rawValue), native(UInt16(AF_INET6)) + octets("fe80::1")),
      ])
    #expect(RouteMessage(message(via))?.hops == [NextHop(index: 5, gateway: IPAddress(text: "fe80::1"))])

    let hops = [("192.0.2.1", Int32(2)), ("192.0.2.2", 3)].flatMap { gateway, index in
      let value = attribute(Int(RTA_GATEWAY.rawValue), octets(gateway))
      return native(UInt16(8 + value.count)) + [0, 0] + native(index) + value
    }
    let several = RouteMessage(message(netlink(RTM_NEWROUTE, fixed, [(Int(RTA_MULTIPATH.rawValue), hops)])))
    #expect(several?.hops.map(\.index) == [2, 3])
    #expect(several?.hops.map { $0.gateway?.description } == ["192.0.2.1", "192.0.2.2"])
  }

  @Test func `a neighbour counts once its link-layer address is known`() {
    let ours: [UInt8] = [2, 0, 0x5E, 0, 0x53, 1]
    #expect(NeighbourMessage(message(neighbour("192.0.2.1", ours)))?.linkAddress == ours)
    #expect(NeighbourMessage(message(neighbour("192.0.2.1", ours, state: NUD_FAILED))) == nil)
    #expect(NeighbourMessage(message(neighbour("192.0.2.1", []))) == nil)
    #expect(NeighbourMessage(message(neighbour("192.0.2.1", [UInt8](repeating: 1, count: 33)))) == nil)
  }
}

@Suite struct `Damaged datagrams` {
  @Test func `reading ends and stays consistent for any damage`() {
    var random = SeededGenerator(seed: testSeed)
    let sound = [
      link(2), address("192.0.2.7/24"), address("2001:db8::7/64", flags: IFA_F_DEPRECATED), route(via: "192.0.2.1"),
      route("2001:db8:1::/48", via: "fe80::1", metric: 1024, source: "2001:db8::7", preference: 1),
      neighbour("192.0.2.1", [2, 0, 0, 0, 0, 1]), link(2, isRunning: false),
      route(type: RTM_DELROUTE), address("192.0.2.7/24", type: RTM_DELADDR), link(2, type: RTM_DELLINK),
    ]
    var state = NetworkState()
    var seen = 0
    for _ in 0..<20_000 {
      var datagram = sound.shuffled(using: &random).prefix(.random(in: 1...4, using: &random)).flatMap { $0 }
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        let index = Int.random(in: 0..<datagram.count, using: &random)
        datagram[index] =
          random.oneIn(2) ? [0, 1, 4, 16, 0x7F, 0xFF].randomElement(using: &random)! : random.octets(1)[0]
      }
      if random.oneIn(4) { datagram.removeLast(.random(in: 0..<datagram.count, using: &random)) }
      for message in NetlinkMessages(datagram[...]) {
        seen += 1
        _ = state.apply(message)
        _ = message.error
        _ = NeighbourMessage(message)
        if let route = RouteMessage(message) {
          #expect(!route.hops.isEmpty)
          _ = IdentityReading.best([route])
          if let address = AddressMessage(message) { _ = IdentityReading.prefix(route, [address]) }
        }
        if let address = AddressMessage(message) { #expect(address.prefix.contains(address.address)) }
      }
    }
    #expect(seen > 10_000)
  }
}
