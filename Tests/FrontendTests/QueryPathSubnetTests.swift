// QueryPathSubnetTests.swift -- client subnets on the hot path (RFC 7871): what is looked for, and what is echoed.

import DNSWire
import MessageCache
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `A client subnet` {
  private let name = "www.example.com"
  private let route = QueryPathScene.subnetRoute

  private func scene() throws -> QueryPathScene { try QueryPathScene(rules: [("example.com", .route(route))]) }

  private func query(_ data: [UInt8]) -> RawQuery { RawQuery { $0.records = [opt(option(8, data))] } }

  private func response(_ last: UInt8, isForEverySubnet: Bool = true) throws -> ComposedResponse {
    var response = try #require(
      ComposedResponse(.noError, to: DomainName(text: name)!, answers: [address(name, last)]))
    response.isForEverySubnet = isForEverySubnet
    return response
  }

  private func subnet(_ text: String) throws -> QueryClientSubnet {
    let prefix = try #require(IPPrefix(text: text))
    let octets = prefix.address.octets + [UInt8](repeating: 0, count: prefix.address.isIPv6 ? 0 : 12)
    return QueryClientSubnet(
      family: prefix.address.isIPv6 ? 2 : 1, sourceLength: UInt8(prefix.length),
      high: octets[..<8].reduce(0) { $0 << 8 | UInt64($1) }, low: octets[8...].reduce(0) { $0 << 8 | UInt64($1) })
  }

  @Test func `a client subnet is ignored and not echoed on a route without subnets, valid or not`() throws {
    let scene = try QueryPathScene()
    try scene.keep(name, [address(name, 1)])
    for data in [
      [0, 1, 24, 0, 203, 0, 7], [0, 2, 56, 0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 24], [], [0, 1, 24, 9, 1, 2, 3],
    ] as [[UInt8]] {
      let message = try scene.reply(query(data))
      #expect(message.answers.count == 1)
      #expect(message.edns?.options == [])
    }
  }

  @Test func `a client subnet finds its own answer and is echoed with the scope`() throws {
    let scene = try scene()
    scene.keep(name, route: route, subnet: try subnet("203.0.7.0/24"), try response(7))
    scene.keep(name, route: route, subnet: try subnet("203.0.9.0/24"), try response(9))
    scene.keep(name, route: route, subnet: try subnet("2001:db8::/56"), try response(6))
    for (data, last, scope) in [
      ([0, 1, 24, 0, 203, 0, 7], 7, 24), ([0, 1, 24, 0, 203, 0, 9], 9, 24), ([0, 1, 32, 0, 203, 0, 9, 77], 9, 24),
      ([0, 2, 56, 0, 0x20, 1, 0x0D, 0xB8, 0, 0, 0], 6, 56),
      ([0, 2, 128, 0, 0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1], 6, 56),
    ] as [([UInt8], UInt8, UInt8)] {
      let message = try scene.reply(query(data))
      #expect(message.answers.map { $0.rdata.last } == [last])
      let echo = Array(data[..<3]) + [scope] + data[4...]
      #expect(message.edns?.options == [EDNS.Option(code: .clientSubnet, data: echo)])
    }
    for data in [[0, 1, 24, 0, 203, 0, 8], [0, 1, 23, 0, 203, 0, 6], [0, 1, 16, 0, 203, 0]] as [[UInt8]] {
      #expect(scene.ask(query(data).octets) == .forward(route))
    }
    #expect(scene.ask(RawQuery().octets) == .forward(route))
  }

  @Test func `a client subnet finds the answer for every subnet, with scope 0`() throws {
    let scene = try scene()
    scene.keep(name, route: route, try response(1))
    let message = try scene.reply(query([0, 1, 24, 0, 203, 0, 7]))
    #expect(message.answers.count == 1)
    #expect(message.edns?.options == [EDNS.Option(code: .clientSubnet, data: [0, 1, 24, 0, 203, 0, 7])])
    #expect(try scene.reply(RawQuery { $0.records = [opt()] }).edns?.options == [])
  }

  @Test func `a client subnet does not find an answer that was fetched without one`() throws {
    let scene = try scene()
    scene.keep(name, route: route, try response(1, isForEverySubnet: false))
    #expect(scene.ask(query([0, 1, 24, 0, 203, 0, 7]).octets) == .forward(route))
    #expect(try scene.reply(RawQuery()).answers.count == 1)
    // A source length of 0 asks for no subnet to be sent.
    for data in [[0, 1, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0]] as [[UInt8]] {
      #expect(try scene.reply(query(data)).answers.count == 1)
    }
    #expect(
      scene.ask(
        RawQuery {
          $0.flags = 0; $0.records = [opt(option(8, [0, 1, 24, 0, 203, 0, 7]))]
        }.octets) != .forward(route))
  }

  @Test func `a client subnet finds NXDOMAIN only if it holds for every subnet`() throws {
    let scene = try scene()
    var nxdomain = ComposedResponse(.nxDomain)
    nxdomain.isForEverySubnet = false
    scene.keep(name, CacheKey.everyType, route: route, nxdomain)
    #expect(scene.ask(query([0, 1, 24, 0, 203, 0, 7]).octets) == .forward(route))
    #expect(try scene.reply(RawQuery()).responseCode == .nxDomain)
    nxdomain.isForEverySubnet = true
    scene.keep(name, CacheKey.everyType, route: route, nxdomain)
    #expect(try scene.reply(query([0, 1, 24, 0, 203, 0, 7])).responseCode == .nxDomain)
  }

  @Test(
    arguments: [
      [], [0, 1], [0, 1, 24, 0, 203, 0], [0, 1, 24, 1, 203, 0, 7], [0, 1, 23, 0, 203, 0, 7], [0, 3, 0, 0],
    ] as [[UInt8]])
  func `an invalid client subnet is FORMERR on a route with subnets`(data: [UInt8]) throws {
    let scene = try scene()
    scene.keep(name, route: route, try response(1))
    let message = try scene.reply(query(data))
    #expect(message.responseCode == .formErr)
    #expect(message.edns?.options == [])
  }

  @Test func `a truncated response echoes the client subnet`() throws {
    let scene = try scene()
    let long = try #require(
      ComposedResponse(.noError, to: DomainName(text: name)!, answers: [text(name, octets: 1536)]))
    scene.keep(name, 16, route: route, subnet: try subnet("203.0.7.0/24"), long)
    let message = try scene.reply(
      RawQuery {
        $0.type = 16; $0.records = [opt(option(8, [0, 1, 24, 0, 203, 0, 7]))]
      })
    #expect(message.header.tc)
    #expect(message.edns?.option(.clientSubnet) == [0, 1, 24, 24, 203, 0, 7])
  }
}
