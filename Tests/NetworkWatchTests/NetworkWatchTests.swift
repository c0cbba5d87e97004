// NetworkWatchTests.swift -- the watch on a real network, which the test changes.

import CNetlink
import DNSWire
import EventLoop
import Glibc
import TestSupport
import Testing

@testable import NetworkWatch

/// What a watch has reported. On the loop's thread only.
private final class Reports: @unchecked Sendable {
  private let loop: EventLoop
  private var changes: [NetworkChange] = []
  private(set) var watch: NetworkWatch?
  /// By how much the watch's clock is ahead of the loop's.
  private var ahead = Duration.zero

  init(on loop: EventLoop) throws {
    self.loop = loop
    watch = try NetworkWatch(on: loop, clock: { [unowned self] in loop.now + ahead }) { [unowned self] in
      changes.append($0)
    }
  }

  /// The next report; nil where none ever comes.
  func next() async -> NetworkChange? { await loop.until { !changes.isEmpty } ? changes.removeFirst() : nil }

  /// What is reported of all that the kernel has said until now, as if every burst were over; nil where nothing is.
  func all() async -> NetworkChange? {
    for _ in 0..<2 {
      await loop.turn()
      ahead = .seconds(60)
      loop.skip(ahead)
      ahead = .zero
    }
    defer { changes = [] }
    return changes.isEmpty ? nil : changes.reduce([]) { $0.union($1) }
  }

  func end() { watch = nil }
}

/// A machine at 192.0.2.7 behind a router at 192.0.2.1.
private func connect(_ network: ThreadNetwork) throws {
  try network.cable("m0", routerName: "r0", routerAddress: "02:00:5e:00:53:01")
  try network.routerIP("address add 192.0.2.1/24 dev r0")
  try network.ip("address add 192.0.2.7/24 dev m0")
  try network.ip("route add default via 192.0.2.1")
}

private let hasNamespaces = ConditionTrait.enabled(
  if: ThreadNetwork.isAvailable, "network namespaces need root and ip(8)")

@Suite(hasNamespaces) struct `The footing of connections` {
  private let server = IPAddress(text: "198.51.100.1")!

  /// Whether connections to a server go on after what `body` does.
  private func survive(
    _ body: @escaping @Sendable (ThreadNetwork) throws -> Void, knowing: Bool = true
  ) throws -> Bool {
    nonisolated(unsafe) var result = false
    try ThreadNetwork.onLoop { [server] network, loop in
      try connect(network)
      let reports = try Reports(on: loop)
      _ = await reports.all()
      let before = try #require(reports.watch?.footing(toward: knowing ? [server] : []))
      try body(network)
      _ = await reports.all()
      let after = try #require(reports.watch?.footing(toward: [server]))
      result = after.carriesConnections(of: before)
      reports.end()
    }
    return result
  }

  @Test func `connections stay valid while eight containers come and go`() throws {
    #expect(
      try survive { network in
        for number in 0..<8 {
          try network.cable("veth\(number)", routerName: "peer\(number)")
          try network.ip("address add 10.\(number).0.1/24 dev veth\(number)")
          try network.ip("route add 10.\(number).9.0/24 dev veth\(number)")
        }
        for number in 0..<4 { try network.ip("link delete veth\(number)") }
      })
  }

  @Test(arguments: [
    ["route replace default via 192.0.2.2"], ["route delete default"],
    // Another address of the same network, with the same default route.
    ["address add 192.0.2.8/24 dev m0", "route replace default via 192.0.2.1 src 192.0.2.8"],
    ["address delete 192.0.2.7/24 dev m0", "address add 192.0.2.9/24 dev m0", "route add default via 192.0.2.1"],
    // A tunnel that takes this destination, or everything by a table of its own.
    ["address add 10.8.0.2/24 dev t0", "route add 198.51.100.0/24 dev t0"], ["route add default dev t0 table 51820"],
    ["-6 address add 2001:db8::7/64 dev m0 nodad", "-6 route add default via 2001:db8::1"],
  ])
  func `connections are renewed when packets take another route`(commands: [String]) throws {
    #expect(
      try !survive { network in
        try network.cable("t0", routerName: "u0")
        for command in commands { try network.ip(command) }
      })
  }

  @Test func `the route of a server found later is read when it is found`() throws {
    #expect(try survive({ try $0.cable("veth0", routerName: "peer0") }, knowing: false))
    #expect(
      try !survive(
        { network in
          try network.ip("address delete 192.0.2.7/24 dev m0")
          try network.ip("address add 192.0.2.9/24 dev m0")
          try network.ip("route add default via 192.0.2.1")
        }, knowing: false))
  }
}

@Suite(hasNamespaces) struct `The network watch` {
  @Test func `a burst of changes is reported once`() throws {
    try ThreadNetwork.onLoop { network, loop in
      try network.cable("m0", routerName: "r0")
      let reports = try Reports(on: loop)
      #expect(await reports.all() == nil)
      try network.ip("address add 192.0.2.7/24 dev m0")
      try network.ip("address add 2001:db8::7/64 dev m0 nodad")
      try network.ip("route add default via 192.0.2.1")
      try network.ip("route add 198.51.100.0/24 via 192.0.2.2")
      #expect(await reports.next() == [.addresses, .routes])
      #expect(await reports.all() == nil)
      try network.ip("route replace default via 192.0.2.2")
      #expect(await reports.all() == .routes)
    }
  }

  @Test func `events without a change are not reported`() throws {
    try ThreadNetwork.onLoop { network, loop in
      try connect(network)
      try network.ip("address add 2001:db8::7/64 dev m0 nodad valid_lft 900 preferred_lft 800")
      let reports = try Reports(on: loop)
      _ = await reports.all()
      try network.ip("address change 2001:db8::7/64 dev m0 valid_lft 700 preferred_lft 600")
      try network.ip("route replace default via 192.0.2.1")
      try network.ip("neighbour replace 192.0.2.9 lladdr 02:00:5e:00:53:09 dev m0")
      try network.ip("link set lo up")
      try network.ip("link set m0 mtu 1400")
      try network.ip("link add c0 type veth peer name c1")
      try network.ip("link set c0 up")
      try network.ip("link set c1 up")
      try network.ip("link del c0")
      #expect(await reports.all() == nil)
    }
  }

  @Test func `a cable that is pulled is noticed, and so is the route that is set again afterwards`() throws {
    try ThreadNetwork.onLoop { network, loop in
      try connect(network)
      let reports = try Reports(on: loop)
      _ = await reports.all()
      try network.routerIP("link set r0 down")
      #expect(await reports.next() == .links)
      try network.routerIP("link set r0 up")
      #expect(await reports.next() == .links)
      // The kernel says nothing of the IPv4 routes that go with the link.
      try network.ip("link set m0 down")
      #expect(await reports.next()?.contains(.links) == true)
      try network.ip("link set m0 up")
      #expect(await reports.next()?.contains(.links) == true)
      try network.ip("route add default via 192.0.2.1")
      #expect(await reports.all() == .routes)
    }
  }

  @Test func `an overflow of the kernel's queue is reported as a change`() throws {
    try ThreadNetwork.onLoop { network, loop in
      try connect(network)
      let reports = try Reports(on: loop)
      _ = await reports.all()
      let lines = (0..<3_000).map { "route add 10.\($0 / 250).\($0 % 250).0/24 via 192.0.2.1\n" }
      let file = TemporaryFile(lines.joined())
      try network.ip("-batch \(file.path)")
      #expect(await reports.next()?.contains(.lostEvents) == true)
      // All of them are known now, also those whose events were lost.
      _ = await reports.all()
      try network.ip("route replace 10.11.249.0/24 via 192.0.2.1")
      #expect(await reports.all() == nil)
    }
  }

  @Test func `the network watch ends with its object`() throws {
    try ThreadNetwork.onLoop { network, loop in
      try network.cable("m0", routerName: "r0")
      let reports = try Reports(on: loop)
      try network.ip("address add 192.0.2.7/24 dev m0")
      // Heard of, and not reported yet.
      await loop.turn()
      reports.end()
      #expect(await reports.all() == nil)
    }
  }
}

@Suite(hasNamespaces) struct `A real network's identity` {
  @Test func `another router with the same address is another network, until the first is back`() throws {
    try ThreadNetwork.onLoop { network, loop in
      try connect(network)
      let reports = try Reports(on: loop)
      let watch = try #require(reports.watch)
      _ = await reports.all()
      var numbers: [UInt32] = []
      for router in ["02:00:5e:00:53:01", "02:00:5e:00:53:02", "02:00:5e:00:53:01"] {
        try network.routerIP("link set r0 address \(router)")
        try network.ip("neighbour flush dev m0")
        let early = try watch.identity()
        #expect(!early.isComplete && early.gatewayLinkAddress == nil)
        watch.knock()
        #expect(await reports.next() == .gateway)
        let identity = try watch.identity()
        #expect(identity.description == "m0 via 192.0.2.1 (\(router)), 192.0.2.0/24")
        #expect(identity.isComplete && identity != early && identity.number != early.number)
        numbers.append(identity.number)
      }
      #expect(numbers[0] == numbers[2] && numbers[0] != numbers[1])
      // Neighbours are of no interest any more.
      try network.ip("neighbour replace 192.0.2.1 lladdr 02:00:5e:00:53:03 dev m0")
      #expect(await reports.all() == nil)
    }
  }

  @Test func `the identity prefers IPv4 and low metrics, and exists without a route`() throws {
    try ThreadNetwork.onLoop { network, _ in
      #expect(try NetworkIdentity.read() == .none)
      try network.cable("m0", routerName: "r0")
      try network.ip("address add 2001:db8::7/64 dev m0 nodad")
      try network.ip("neighbour add fe80::1 lladdr 02:00:5e:00:53:01 dev m0")
      try network.ip("-6 route add default via fe80::1 dev m0")
      #expect(try NetworkIdentity.read().description == "m0 via fe80::1 (02:00:5e:00:53:01), 2001:db8::/64")
      try network.ip("address add 192.0.2.7/24 dev m0")
      try network.ip("neighbour add 192.0.2.1 lladdr 02:00:5e:00:53:01 dev m0")
      try network.ip("route add default via 192.0.2.1 metric 600")
      #expect(try NetworkIdentity.read().description == "m0 via 192.0.2.1 (02:00:5e:00:53:01), 192.0.2.0/24")
      try network.cable("m1", routerName: "r1")
      try network.ip("address add 198.51.100.7/25 dev m1")
      try network.ip("route add default dev m1 metric 100")
      let second = try NetworkIdentity.read()
      #expect(second.description == "m1, 198.51.100.0/25" && second.isComplete)
      try network.ip("route add unreachable default metric 10")
      #expect(try NetworkIdentity.read() == second)
    }
  }
}
