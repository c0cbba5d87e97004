// ResolverSearchTests.swift -- names below a search domain of the network: who is asked, when, and whose word counts.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Routing
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Refresh
@testable import Resolver
@testable import Upstreams

@Suite struct `Below a search domain` {
  let loop = SimulatedLoop()
  let nxdomain = HTTPDNSAnswer.negative(.nxDomain, zone: name("example"))

  /// A provider that knows `www.corp.example` and denies everything else.
  private func provider() -> ScriptedUpstream {
    ScriptedUpstream(on: loop) { [nxdomain] question, _ in
      .answer(question.name == name("www.corp.example") ? .addresses(question.name, "192.0.2.1") : nxdomain)
    }
  }

  /// A network that answers A of `web.corp.example` and of everything public, has no other type of it, and denies the rest.
  private func network() -> ScriptedLocalDNS {
    ScriptedLocalDNS(on: loop) { [nxdomain] question, _ in
      switch question.name {
      case name("none.corp.example"): .answer(nxdomain)
      case _ where question.type == .a: .answer(.addresses(question.name, "10.0.0.1", ttl: 3600))
      default: .answer(.negative(.noError, zone: name("corp.example")))
      }
    }
  }

  private func scene(
    _ provider: ScriptedUpstream, _ local: ScriptedLocalDNS?, _ domain: String = "corp.example",
    _ configure: (inout ResolverSettings) -> Void = { _ in }
  ) -> ResolverScene {
    ResolverScene(on: loop, [provider], local: local, searchDomains: [domain], configure)
  }

  @Test(arguments: [true, false])
  func `the provider answers what it knows, and the network is not asked`(fallsBack: Bool) throws {
    let (provider, local) = (provider(), network())
    let scene = scene(provider, local) { $0.routes[4].fallsBack = fallsBack }
    #expect(try scene.answer("www.corp.example").addresses == ["192.0.2.1"])
    #expect(local.asked.isEmpty)
  }

  @Test(arguments: [true, false])
  func `a provider's NXDOMAIN leads to the network, whose data wins`(fallsBack: Bool) throws {
    let (provider, local) = (provider(), network())
    let scene = scene(provider, local) { $0.routes[4].fallsBack = fallsBack }
    let message = try scene.answer("web.corp.example")
    #expect(message.addresses == ["10.0.0.1"])
    #expect(message.answers.map(\.ttl) == [60])
    #expect(provider.asked.count == 1)
    // A provider's NXDOMAIN counts if the network has nothing better.
    #expect(try scene.answer("none.corp.example").responseCode == .nxDomain)
    #expect(try scene.answer("none.corp.example").authorities.map(\.owner) == [name("example")])
  }

  @Test(arguments: [0, 900, 1100], [0, 500])
  func `another provider's failure does not keep the network out`(latency: Int, after: Int) throws {
    let failing = ScriptedUpstream("failing", on: loop) { _, _ in
      .answer(HTTPDNSAnswer(responseCode: .servFail), after: .milliseconds(latency))
    }
    let (second, local) = (provider(), network())
    second.traits.timeout = .seconds(2)
    let (script, answer) = (second.script, local.script)
    second.script = { question, number in
      var step = script(question, number)
      step.latency = .milliseconds(after)
      return step
    }
    local.script = { question, number in
      var step = answer(question, number)
      step.latency = .milliseconds(300)
      return step
    }
    let scene = ResolverScene(on: loop, [failing, second], local: local, searchDomains: ["corp.example"])
    #expect(try scene.answer("web.corp.example").addresses == ["10.0.0.1"])
    #expect(try scene.answer("none.corp.example").responseCode == .nxDomain)
    #expect(second.asked.count == 2)
  }

  @Test func `a provider's NXDOMAIN is remembered by name, so that a name costs one request`() throws {
    let (provider, local) = (provider(), network())
    let scene = scene(provider, local)
    for type in [RecordType.a, .aaaa, .https, .mx] {
      #expect(try scene.answer("web.corp.example", type).responseCode == .noError)
    }
    #expect(provider.asked.count == 1)
    #expect(local.asked.count == 4)
    // As long as what it has let in counts, and no longer.
    loop.advance(by: .seconds(61))
    #expect(try scene.answer("web.corp.example").addresses == ["10.0.0.1"])
    #expect(provider.asked.count == 2)
  }

  @Test func `NXDOMAIN that came for the other family is not final either`() throws {
    let (provider, local) = (provider(), network())
    provider.along = { [nxdomain] question in
      [(HTTPDNSQuestion(name: question.name, type: question.type == .a ? .aaaa : .a), nxdomain)]
    }
    let scene = scene(provider, local)
    #expect(try scene.answer("web.corp.example", .aaaa).responseCode == .noError)
    #expect(try scene.answer("web.corp.example", .a).addresses == ["10.0.0.1"])
  }

  @Test func `a name that is not listed is asked of the network, also without fallback`() throws {
    let (provider, local) = (provider(), network())
    provider.script = { _, _ in ScriptedStep(latency: .milliseconds(20), result: .failure(.absent(.notListed))) }
    let scene = scene(provider, local) { $0.routes[4].fallsBack = false }
    #expect(try scene.answer("web.corp.example").addresses == ["10.0.0.1"])
  }

  @Test(arguments: [Configuration.SearchDomains.afterNXDOMAIN, .first])
  func `an alias that leads nowhere is known to the provider, and the network is not asked`(
    order: Configuration.SearchDomains
  ) throws {
    let (provider, local) = (provider(), network())
    let alias = ResourceRecord.alias(name("web.corp.example"), name("gone.example.net"), ttl: 60)
    var nowhere = nxdomain
    nowhere.answers = [alias]
    provider.script = { [nowhere] _, _ in .answer(nowhere) }
    if order == .first { local.script = { [nxdomain] _, _ in .answer(nxdomain) } }
    let scene = scene(provider, local) { $0.routes[4].search = order }
    let message = try scene.answer("web.corp.example")
    #expect(message.responseCode == .nxDomain)
    #expect(message.answers == [alias])
    #expect(local.asked.count == (order == .first ? 1 : 0))
  }

  @Test func `a provider's failure does not count as NXDOMAIN`() throws {
    let (provider, local) = (provider(), network())
    provider.script = { _, _ in .failure() }
    let scene = scene(provider, local) { $0.routes[4].fallsBack = false }
    #expect(try scene.answer("web.corp.example").responseCode == .servFail)
    #expect(local.asked.isEmpty)
  }

  @Test(arguments: [Configuration.SearchDomains.afterNXDOMAIN, .first])
  func `a network that is silent confirms nothing for long`(order: Configuration.SearchDomains) throws {
    let (provider, local) = (provider(), network())
    let answering = local.script
    local.script = { _, _ in .silence }
    let scene = scene(provider, local) { $0.routes[4].search = order }
    #expect(try scene.answer("web.corp.example").responseCode == .nxDomain)
    local.script = answering
    loop.advance(by: .seconds(6))
    #expect(try scene.answer("web.corp.example").addresses == ["10.0.0.1"])
    #expect(provider.asked.count == 1)
  }

  @Test func `the network's earlier answer wins over a slow provider's NXDOMAIN`() throws {
    let (provider, local) = (provider(), network())
    provider.script = { [nxdomain] _, _ in .answer(nxdomain, after: .milliseconds(1500)) }
    let scene = scene(provider, local)
    #expect(try scene.answer("web.corp.example").addresses == ["10.0.0.1"])
    #expect(local.asked.count == 1)
    // And one that comes after NXDOMAIN.
    local.script = { question, _ in .answer(.addresses(question.name, "10.0.0.2"), after: .milliseconds(1000)) }
    #expect(try scene.answer("wiki.corp.example").addresses == ["10.0.0.2"])
    #expect(local.asked.count == 2)
  }

  @Test func `search_domains = "first" asks the network, and the provider for the rest`() throws {
    let (provider, local) = (provider(), network())
    let scene = scene(provider, local) {
      $0.routes[4].search = .first
      $0.routes[4].fallsBack = false
    }
    #expect(try scene.answer("www.corp.example").addresses == ["10.0.0.1"])
    #expect(provider.asked.isEmpty)
    local.script = { [nxdomain] _, _ in .answer(nxdomain) }
    loop.advance(by: .seconds(61))
    #expect(try scene.answer("www.corp.example").addresses == ["192.0.2.1"])
    local.script = { _, _ in .silence }
    loop.advance(by: .seconds(301))
    #expect(try scene.answer("www.corp.example").addresses == ["192.0.2.1"])
  }

  @Test func `search com leaves public names with the provider`() throws {
    let (provider, local) = (provider(), network())
    provider.script = { question, _ in .answer(.addresses(question.name, "192.0.2.1")) }
    let scene = scene(provider, local, "com")
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    #expect(local.asked.isEmpty)
  }

  @Test func `the network's names are valid there only, and its NXDOMAIN does not cover names below`() throws {
    let (provider, local) = (provider(), network())
    let scene = scene(provider, local)
    scene.network.change(to: 1)
    _ = try scene.answer("web.corp.example")
    scene.network.change(to: 2)
    local.script = { [nxdomain] _, _ in .answer(nxdomain) }
    #expect(try scene.answer("web.corp.example").responseCode == .nxDomain)
    #expect(try scene.answer("none.corp.example").responseCode == .nxDomain)
    local.script = { question, _ in .answer(.addresses(question.name, "10.0.0.3")) }
    #expect(try scene.answer("a.none.corp.example").addresses == ["10.0.0.3"])
    scene.network.change(to: 1)
    #expect(try scene.answer("web.corp.example").addresses == ["10.0.0.1"])
  }

  @Test func `rebind protection applies to the provider and not to the network`() throws {
    let (provider, local) = (provider(), network())
    provider.script = { [nxdomain] question, _ in
      .answer(question.name == name("web.corp.example") ? nxdomain : .addresses(question.name, "10.9.9.9"))
    }
    let scene = scene(provider, local) { $0.rebindFilter = RebindFilter(allowed: []) }
    #expect(try scene.answer("web.corp.example").addresses == ["10.0.0.1"])
    #expect(try scene.answer("bad.corp.example").extendedError == .filtered)
  }

  @Test func `a refresh asks the upstream that has the name`() throws {
    let (provider, local) = (provider(), network())
    let scene = scene(provider, local)
    _ = try scene.answer("web.corp.example")
    let asked = RoutedQuestion(
      question: HTTPDNSQuestion(name: name("web.corp.example"), type: .a), route: Route.Number.search)
    func source() -> EntrySource? {
      scene.resolver.assumeIsolated { $0.refreshSource(asked, after: .localDNS)?.source }
    }
    #expect(source() == .localDNS)
    // The provider is asked once in a while whether it denies the name still: by a client's question.
    loop.advance(by: .seconds(61))
    #expect(source() == nil)
    let refreshed = loop.run { [resolver = scene.resolver] in
      await resolver.refresh([RefreshedQuestion(asked: asked, hash: 0, heat: .inactive)], from: .provider(0))
    }
    #expect(refreshed == [false])
  }
}
