// NetworkIdentityTests.swift -- what makes a network the same one.

import CNetlink
import DNSWire
import EventLoop
import Testing

@testable import NetworkWatch

private func identity(
  _ interface: String = "eth0", _ gateway: String? = "192.0.2.1", _ link: [UInt8]? = [2, 0, 0x5E, 0, 0x53, 1],
  _ prefix: String? = "192.0.2.0/24", isComplete: Bool = true
) -> NetworkIdentity {
  NetworkIdentity(
    interface: interface, gateway: gateway.flatMap { IPAddress(text: $0) }, gatewayLinkAddress: link,
    prefix: prefix.flatMap { IPPrefix(text: $0) }, isComplete: isComplete)
}

@Suite struct `The identity of a network` {
  @Test func `the number of a network is the same in every run`() {
    // The first four octets of sha256sum over "network/1/eth0//192.0.2.1//02005e005301//192.0.2.0/24", and over
    // "network/1///////".
    #expect(identity().number == 4_113_127_840)
    #expect(NetworkIdentity.none.number == 3_888_556_372)
  }

  @Test func `every part of it makes a difference`() {
    let others = [
      identity("eth1"), identity("eth0", "192.0.2.2"), identity("eth0", nil), identity("eth0", "192.0.2.1", nil),
      identity("eth0", "192.0.2.1", [2, 0, 0x5E, 0, 0x53, 2]),
      identity("eth0", "192.0.2.1", [2, 0, 0x5E, 0, 0x53, 1], "192.0.2.0/25"),
      identity("eth0", "192.0.2.1", [2, 0, 0x5E, 0, 0x53, 1], nil), .none,
    ]
    #expect(Set(others.map(\.number) + [identity().number]).count == others.count + 1)
  }

  @Test func `the identity of a network has a description for the log`() {
    #expect(identity().description == "eth0 via 192.0.2.1 (02:00:5e:00:53:01), 192.0.2.0/24")
    #expect(
      identity("wlan0", "fe80::1", nil, "2001:db8::/64", isComplete: false).description
        == "wlan0 via fe80::1 (link-layer address not known yet), 2001:db8::/64")
    #expect(identity("tun0", nil, nil, nil).description == "tun0")
    #expect(NetworkIdentity.none.description == "no network")
  }
}

@Suite struct `The footing that is followed` {
  private func footing(_ identity: NetworkIdentity) -> NetworkFooting {
    NetworkFooting(identity: identity, defaultRoutes: DefaultRoutes(), addresses: [], destinations: [], sources: [:])
  }

  /// Whether connections go on, for each look in turn.
  private func carried(from first: NetworkFooting?, _ looks: [NetworkFooting?]) -> [Bool] {
    var followed = FollowedFooting(first)
    return looks.map { followed.move(to: $0) }
  }

  @Test func `the followed identity survives a missing reply of the kernel`() {
    let (here, there) = (footing(identity()), footing(identity("eth1")))
    #expect(carried(from: here, [here, nil, here, there, there]) == [true, false, true, false, true])
  }

  @Test func `the followed identity is known from the first successful reading`() {
    let here = footing(identity())
    #expect(carried(from: nil, [here, here]) == [false, true])
  }
}

@Suite struct `This machine's network` {
  @Test func `this machine's network is readable and watchable without privileges`() throws {
    let identity = try NetworkIdentity.read()
    #expect((identity == .none) == (identity.interface == nil))
    let watch = try NetworkWatch(on: EventLoop()) { _ in }
    #expect(try watch.identity().interface == identity.interface)
  }
}

@Suite struct `The default route` {
  private func best(_ routes: [UInt8]...) -> [String?] {
    let parsed = routes.map { RouteMessage(message($0))! }
    // The order in which the kernel reports them must make no difference.
    let found = [parsed, parsed.reversed()].map { IdentityReading.best($0) }
    #expect(found[0] == found[1])
    return [found[0]?.hops[0].gateway?.description]
  }

  @Test func `the default route is the one with the lowest metric`() {
    #expect(best(route(via: "192.0.2.1", metric: 600), route(via: "192.0.2.2", metric: 100)) == ["192.0.2.2"])
    #expect(best(route(via: "192.0.2.1", metric: 600), route(via: "192.0.2.2")) == ["192.0.2.2"])
  }

  @Test func `equal default routes are ordered by router preference, then by address`() {
    let low = route("::/0", via: "fe80::1", metric: 1024, preference: 3)
    let medium = route("::/0", via: "fe80::2", metric: 1024, preference: 0)
    let high = route("::/0", via: "fe80::4", metric: 1024, preference: 1)
    #expect(best(low, medium) == ["fe80::2"])
    #expect(best(low, medium, high) == ["fe80::4"])
    #expect(best(medium, route("::/0", via: "fe80::3", metric: 1024)) == ["fe80::2"])
  }

  @Test func `the prefix is that of the route's source, else of the gateway's link, else a global one`() {
    let prefix = { (route: [UInt8], addresses: [[UInt8]]) in
      let parsed = addresses.map { AddressMessage(message($0))! }
      let found = [parsed, parsed.reversed()].map { IdentityReading.prefix(RouteMessage(message(route))!, $0) }
      #expect(found[0] == found[1])
      return found[0]?.description
    }
    let two = [address("198.51.100.7/24"), address("192.0.2.7/24")]
    #expect(prefix(route(via: "192.0.2.1"), two) == "192.0.2.0/24")
    #expect(prefix(route(via: "198.51.100.1"), two) == "198.51.100.0/24")
    #expect(prefix(route(via: "192.0.2.1", source: "198.51.100.7"), two) == "198.51.100.0/24")
    let six = [
      address("fe80::7/64", scope: RT_SCOPE_LINK), address("fd00::7/64"), address("2001:db8::7/64"),
      address("2001:db8:0:1::7/64"), address("2001:d00::7/64", flags: IFA_F_DEPRECATED),
      address("2001:c00::7/64", flags: IFA_F_TENTATIVE),
    ]
    #expect(prefix(route("::/0", via: "fe80::1"), six) == "2001:db8::/64")
    #expect(prefix(route("::/0", via: "fe80::1"), [six[0], six[1]]) == "fd00::/64")
    #expect(prefix(route("::/0", via: "fe80::1"), [six[0]]) == nil)
  }
}
