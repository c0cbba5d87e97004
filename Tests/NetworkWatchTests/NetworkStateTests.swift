// NetworkStateTests.swift -- which events are news, and which are noise.

import CNetlink
import Glibc
import Testing

@testable import NetworkWatch

/// A machine on one network, as the kernel would tell of it.
private func settled() -> NetworkState {
  var state = NetworkState()
  for event in [
    link(1, "lo", more: IFF_LOOPBACK), link(2), address("192.0.2.7/24"), address("2001:db8::7/64"),
    route("192.0.2.0/24"), route(via: "192.0.2.1"), route("::/0", via: "fe80::1", metric: 1024),
  ] {
    _ = state.apply(message(event))
  }
  return state
}

/// What each of some events changes, one after the other.
private func changes(_ events: [UInt8]..., from state: NetworkState = settled()) -> [NetworkChange] {
  var state = state
  return events.map { state.apply(message($0)) }
}

@Suite struct `News of the network` {
  @Test func `new and removed addresses are reported, renewed ones are not`() {
    #expect(
      changes(
        address("192.0.2.8/24"), address("192.0.2.8/24", lifetime: 900), address("192.0.2.8/24", type: RTM_DELADDR),
        address("192.0.2.8/24", type: RTM_DELADDR)) == [.addresses, [], .addresses, []])
    #expect(changes(address("2001:db8::7/64", flags: IFA_F_PERMANENT | IFA_F_NOPREFIXROUTE)) == [[]])
    #expect(changes(address("2001:db8::7/64", flags: IFA_F_DEPRECATED)) == [.addresses])
  }

  @Test func `an address is news once it may be used, and not again when it is looked for a second time`() {
    #expect(
      changes(
        address("2001:db8::9/64", flags: IFA_F_TENTATIVE), address("2001:db8::9/64"),
        address("2001:db8::9/64", flags: IFA_F_TENTATIVE), address("2001:db8::9/64")) == [[], .addresses, [], []])
    #expect(
      changes(
        address("2001:db8::9/64", flags: IFA_F_TENTATIVE | IFA_F_DADFAILED),
        address("2001:db8::9/64", flags: IFA_F_TENTATIVE | IFA_F_DADFAILED, type: RTM_DELADDR)) == [[], []])
  }

  @Test func `loopback and link-local addresses are not reported`() {
    #expect(changes(address("fe80::7/64", scope: RT_SCOPE_LINK), address("127.0.0.2/8", on: 1)) == [[], []])
    #expect(changes(address("192.0.2.9/32", scope: RT_SCOPE_HOST)) == [[]])
    // IPv4's own link-local addresses may be all that there is.
    #expect(changes(address("169.254.7.7/16", scope: RT_SCOPE_LINK)) == [.addresses])
  }

  @Test func `a link is news when it begins or ceases to work, if it has an address`() {
    #expect(
      changes(link(2, isRunning: false), link(2, isRunning: false), link(2), link(2, more: IFF_PROMISC)) == [
        .links, [], .links, [],
      ])
    #expect(changes(link(2, type: RTM_DELLINK), link(2, type: RTM_DELLINK)) == [.links, []])
    #expect(changes(link(9, "veth9"), link(9, "veth9", isRunning: false), link(9, type: RTM_DELLINK)) == [[], [], []])
  }

  @Test func `new, removed and changed routes are reported, repeated ones are not`() {
    #expect(
      changes(
        route(via: "192.0.2.1"), route(via: "192.0.2.2", replaces: true), route(via: "192.0.2.1", replaces: true),
        route(via: "192.0.2.1", type: RTM_DELROUTE), route(via: "192.0.2.1", type: RTM_DELROUTE)) == [
          [], .routes, .routes, .routes, [],
        ])
    #expect(changes(route(via: "192.0.2.1", metric: 50), route("0.0.0.0/1", on: 7)) == [.routes, .routes])
    #expect(changes(route("0.0.0.0/0", kind: RTN_UNREACHABLE)) == [.routes])
    // Without "replace" both are there.
    #expect(
      changes(route("::/0", via: "fe80::2", metric: 1024), route("::/0", via: "fe80::1", metric: 1024)) == [
        .routes, [],
      ])
  }

  @Test func `cached, local and host routes are not reported`() {
    #expect(changes(route("198.51.100.9/32", via: "192.0.2.1", flags: Int32(RTM_F_CLONED))) == [[]])
    #expect(changes(route("198.51.100.0/24", via: "192.0.2.1", flags: Int32(RTM_F_CLONED))) == [[]])
    #expect(changes(route("198.51.100.9/32", via: "192.0.2.1"), route("2001:db8::1/128")) == [[], []])
    #expect(changes(route("192.0.2.0/24", table: RT_TABLE_LOCAL, kind: RTN_BROADCAST)) == [[]])
    #expect(
      changes(route("fe80::/64"), route("ff00::/8", kind: RTN_MULTICAST), route("198.51.100.0/24", on: 1)) == [
        [], [], [],
      ])
    #expect(changes(neighbour("192.0.2.1", [2, 0, 0, 0, 0, 1])) == [[]])
  }

  @Test func `a router's table is bounded; its default route is news all the same`() {
    var state = settled()
    var news = 0
    for index in 0..<6_000 where !state.apply(message(route("10.\(index / 250).\(index % 250).0/24"))).isEmpty {
      news += 1
    }
    #expect(news < NetworkState.limit && news > NetworkState.limit - 10)
    #expect(changes(route(via: "192.0.2.2", metric: 7), from: state) == [.routes])
    #expect(
      changes(route("10.0.0.0/24", type: RTM_DELROUTE), route("10.250.0.0/24"), from: state) == [.routes, .routes])
  }
}
