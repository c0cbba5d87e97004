// NAT64Tests.swift -- how the prefix of a network's NAT64 is found, and when.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import LocalDNS
import LocalDNSTestSupport
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Upstreams

@Suite struct `The NAT64 of a network` {
  private let loop = SimulatedLoop()
  private let laboratory: Laboratory
  private let server = PlainResolver(SocketAddress(text: "[2001:db8::53]:53")!)
  private let nat64: NAT64

  init() {
    let laboratory = Laboratory(on: loop)
    self.laboratory = laboratory
    nat64 = NAT64(LocalDNSClient(over: laboratory), on: loop) { [server] in [server] }
  }

  private func serve(_ address: String?, ttl: UInt32 = 300) {
    var zone = LabZone()
    zone.add("ipv4only.arpa", .a, [192, 0, 0, 170])
    if let address { zone.add("ipv4only.arpa", .aaaa, IPAddress(text: address)!.octets, ttl: ttl) }
    laboratory.servers[server.address] = zone.server
  }

  private var asked: Int { laboratory.queries[server.address]?.count ?? 0 }

  private static let ipv4 = IPAddress(text: "203.0.113.7")!

  @Test func `is asked of the network's resolver where there is no route to IPv4, and again at the TTL`() {
    serve("64:ff9b::c000:aa")
    nat64.follow(.auto)
    nat64.networkIs(hasIPv4Route: true, hasIPv6Route: true)
    nat64.networkIs(hasIPv4Route: false, hasIPv6Route: false)
    loop.advance(by: .seconds(1))
    #expect(asked == 0 && nat64.prefix == nil)
    var changes = 0
    nat64.changed = { changes += 1 }
    nat64.networkIs(hasIPv4Route: false, hasIPv6Route: true)
    loop.advance(by: .seconds(1))
    #expect(asked == 1 && nat64.prefix?.description == "64:ff9b::/96" && changes == 1)
    #expect(nat64.reach([Self.ipv4]) == [IPAddress(text: "64:ff9b::cb00:7107")!])
    let others = ["127.0.0.1", "2001:db8::1"].map { IPAddress(text: $0)! }
    #expect(nat64.reach(others) == others)
    serve("2001:db8:64::c000:aa")
    loop.advance(by: .seconds(300))
    #expect(asked == 2 && nat64.prefix?.description == "2001:db8:64::/96" && changes == 2)
    // On a network with IPv4 it is over at once.
    nat64.networkIs(hasIPv4Route: true, hasIPv6Route: true)
    #expect(nat64.prefix == nil && nat64.reach([Self.ipv4]) == [Self.ipv4])
    loop.advance(by: .seconds(7200))
    #expect(asked == 2)
  }

  @Test func `a network without one is asked each hour, and a silent resolver after 10 s`() {
    nat64.follow(.auto)
    nat64.networkIs(hasIPv4Route: false, hasIPv6Route: true)
    loop.advance(by: .seconds(5))
    #expect(nat64.prefix == nil)
    serve(nil)
    let before = asked
    loop.advance(by: .seconds(10))
    #expect(asked == before + 1 && nat64.prefix == nil)
    loop.advance(by: .seconds(50))
    #expect(asked == before + 1)
    serve("64:ff9b::c000:aa")
    loop.advance(by: .seconds(3600))
    #expect(nat64.prefix != nil)
  }

  @Test func `an answer of the network before is not used`() {
    serve("64:ff9b::c000:aa")
    nat64.follow(.auto)
    nat64.networkIs(hasIPv4Route: false, hasIPv6Route: true)
    nat64.networkIs(hasIPv4Route: true, hasIPv6Route: true)
    loop.advance(by: .seconds(5))
    #expect(nat64.prefix == nil)
  }

  @Test func `a prefix of the configuration needs no question, and reaches servers only where nothing else does`() {
    let given = NAT64Prefix(IPPrefix(text: "2001:db8:64::/96")!)!
    nat64.follow(.prefix(given))
    #expect(nat64.prefix == given && nat64.reach([Self.ipv4]) == [Self.ipv4])
    nat64.networkIs(hasIPv4Route: false, hasIPv6Route: true)
    #expect(nat64.reach([Self.ipv4]) == [given.address(of: Self.ipv4)])
    loop.advance(by: .seconds(60))
    #expect(asked == 0)
    nat64.follow(.off)
    #expect(nat64.prefix == nil)
  }

  @Test func `a server gets another connection when it is reached another way`() async {
    let opened = Opened()
    let transport = ScriptedTransport(on: loop) { _ in (.refused, .zero) }
    let provider = ProviderServer("server", addresses: [Self.ipv4], nat64: nat64) { addresses in
      opened.addresses.append(addresses)
      return transport
    }
    serve("64:ff9b::c000:aa")
    nat64.changed = { provider.networkHasChanged() }
    nat64.follow(.auto)
    nat64.networkIs(hasIPv4Route: false, hasIPv6Route: true)
    loop.advance(by: .seconds(1))
    provider.networkHasChanged()
    #expect(opened.addresses == [[Self.ipv4], [IPAddress(text: "64:ff9b::cb00:7107")!]])
    #expect(provider.addresses == [Self.ipv4] && transport.renewals == 1)
  }
}

/// The addresses that a server's transports were opened to.
private final class Opened { var addresses: [[IPAddress]] = [] }
