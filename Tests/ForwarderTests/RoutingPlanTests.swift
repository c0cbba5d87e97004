// RoutingPlanTests.swift -- what a rule says of its names takes the place of the keys in [cache] and [localdns].

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import Routing
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `The routes of a configuration` {
  private func routes(_ text: String) throws -> [Route] {
    let loaded = try Configuration.parse(text: text, fileName: "", environment: { _ in nil })
    return RoutingPlan(loaded.configuration, hosts: HostsFile(), searchDomains: []).routes
  }

  @Test func `routes take stale data, bounds and fallback from the defaults`() throws {
    let routes = try routes(
      """
      [[rule]]
      names = ["corp.example"]
      use = "localdns"
      [[rule]]
      names = ["cdn.example"]
      use = "alidns"
      """)
    let (first, second) = (Int(Route.Number.firstRule), Int(Route.Number.firstRule) + 1)
    #expect(routes.count == second + 1)
    for number in [0, 1, first, second] {
      let policy = routes[number].stale
      #expect(policy.mode == .onFailure)
      #expect(policy.wait == .milliseconds(1800))
      #expect(policy.maxAge == 86_400)
      #expect(!policy.isImmutable)
      // What the network's resolvers say counts on that network.
      #expect(routes[number].belongsToNetwork == [1, first].contains(number))
      #expect(routes[number].ttl.highest == 3600)
    }
    #expect(routes[second].fallsBack)
  }

  @Test func `types that the hosts file does not answer have routes of their own, which keep their numbers`() throws {
    let text = "[[rule]]\nnames = [\"corp.example\"]\nuse = \"localdns\""
    let configuration = try Configuration.parse(text: text, fileName: "", environment: { _ in nil }).configuration
    let hosts = try HostsFile(octets: Array("192.0.2.1 box.example box.corp.example\n".utf8))
    var numbers = ServiceNumbers().routes
    func plan(_ hosts: HostsFile) throws -> RoutingPlan {
      try #require(RoutingPlan(configuration, hosts: hosts, searchDomains: [], loopZone: nil, numbers: &numbers))
    }
    func number(_ text: String, _ type: RecordType, _ plan: RoutingPlan) throws -> UInt16? {
      let octets = try #require(DomainName(text: text)).octets
      let decision = octets.withUnsafeBufferPointer {
        plan.table.find($0.baseAddress!, length: $0.count, type: type.rawValue).decision
      }
      return if case .route(let number) = decision { number } else { nil }
    }
    let empty = try plan(HostsFile())
    #expect(empty.routes.allSatisfy { $0.hostsNamesOf == nil })
    let full = try plan(hosts)
    let first = Route.Number.firstRule
    for (name, usual) in [("box.example", Route.Number.standard), ("box.corp.example", first)] {
      #expect(try number(name, .mx, empty) == usual)
      #expect(try number(name, .a, full) == nil)
      let own = try #require(try number(name, .mx, full))
      #expect(own > first && full.routes[Int(own)].hostsNamesOf == usual)
      #expect(full.routes[Int(own)].providers == full.routes[Int(usual)].providers)
      #expect(try number(name, .mx, plan(hosts)) == own)
    }
    #expect(try number("www.corp.example", .mx, full) == first)
  }

  @Test func `routes to configured resolvers are the same on every network`() throws {
    let rule = "[[rule]]\nnames = [\"corp.example\"]\nuse = \"localdns\"\nservers = [\"10.0.0.1\"]"
    let route = try routes(rule)[Int(Route.Number.firstRule)]
    #expect(!route.belongsToNetwork)
    #expect(!route.isConfined)
  }

  @Test func `answers of a portal are never stale, nor valid on another network`() throws {
    let portal = try routes("cache = { stale = \"immediate\", immutable = true, min_ttl = \"1m\" }")[2]
    #expect(portal.stale == StalePolicy())
    #expect(portal.belongsToNetwork)
    #expect(portal.ttl.highest == 10)
    #expect(portal.ttl.lowest == 0)
  }

  @Test func `routes take the settings of [cache]`() throws {
    let text = """
      [cache]
      stale = "immediate"
      stale_wait = "500ms"
      stale_max_age = "1h"
      immutable = true
      per_network = true
      """
    for route in try routes(text)[..<2] {
      #expect(route.stale.mode == .immediate)
      #expect(route.stale.wait == .milliseconds(500))
      #expect(route.stale.maxAge == 3600)
      #expect(route.stale.isImmutable)
      #expect(route.belongsToNetwork)
    }
  }

  @Test func `routes take the settings of their rule in place of [cache]`() throws {
    let rules = try routes(
      """
      [cache]
      immutable = true
      [[rule]]
      names = ["cdn.example"]
      use = "alidns"
      stale = "off"
      immutable = false
      max_ttl = "5m"
      min_ttl = "1m"
      fallback = "never"
      [[rule]]
      names = ["fixed.example"]
      use = "alidns"
      stale = "immediate"
      [[rule]]
      names = ["plain.example"]
      use = "localdns"
      immutable = true
      max_ttl = "1m"
      """
    )[Int(Route.Number.firstRule)...].map { $0 }
    #expect(rules.map(\.stale.mode) == [.off, .immediate, .onFailure])
    #expect(rules.map(\.stale.isImmutable) == [false, true, true])
    #expect((rules[0].ttl.lowest, rules[0].ttl.highest) == (60, 300))
    #expect(rules[2].ttl.highest == 60)
    #expect(rules.map(\.fallsBack) == [false, true, true])
  }

  @Test func `a rule has its providers in their order, or those of the default route with other terms`() throws {
    let routes = try routes(
      """
      [[provider]]
      name = "one"
      kind = "json"
      url = "https://192.0.2.1/resolve"
      [[provider]]
      name = "two"
      kind = "json"
      url = "https://192.0.2.2/resolve"
      [[rule]]
      names = ["good.example"]
      use = "default"
      [[rule]]
      names = ["a.example"]
      use = ["two", "one"]
      [[rule]]
      names = ["b.example"]
      types = ["A"]
      use = "default"
      fallback = "never"
      """)
    // The first rule needs no route of its own.
    let own = routes[Int(Route.Number.firstRule)...]
    #expect(own.map(\.providers) == [[1, 0], [0, 1]])
    #expect(own.map(\.fallsBack) == [true, false])
    #expect(own.map(\.filtersPrivate) == [true, true])
  }

  @Test func `the resolver uses the routes of the plan`() throws {
    let loop = SimulatedLoop()
    var step = ScriptedStep.failure()
    let provider = ScriptedUpstream("alidns", on: loop) { question, _ in
      if case .failure? = step.result { return step }
      return .answer(.addresses(question.name, "192.0.2.1", ttl: 7200))
    }
    let routes = try routes(
      """
      [cache]
      max_ttl = "10m"
      [[rule]]
      names = ["a.example"]
      use = "alidns"
      stale = "off"
      [[rule]]
      names = ["b.example"]
      use = "alidns"
      immutable = true
      max_ttl = "20s"
      """)
    let rules = ["a.example", "b.example"].enumerated().map { number, text in
      RouteRule(names: [.subtree(name(text))], action: .route(Route.Number.firstRule + UInt16(number)))
    }
    let scene = ResolverScene(on: loop, [provider], rules: rules) { $0.routes = routes }
    step = .answer(.negative(.noError))
    let names = ["www.example", "www.a.example", "www.b.example"]
    #expect(try names.map { try scene.answer($0).answers.map(\.ttl) } == [[600], [600], [20]])
    loop.advance(by: .seconds(601))
    step = .failure()
    let answers = try names.map { try scene.answer($0) }
    #expect(answers.map(\.responseCode) == [.noError, .servFail, .noError])
    #expect(answers.map(\.extendedError) == [.staleAnswer, .networkError, nil])
    #expect(answers[2].answers.map(\.ttl) == [20])
  }
}
