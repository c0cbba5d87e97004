// ResolverElsewhereTests.swift -- what one network's resolver has said is nothing on another network.

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
@testable import Resolver
@testable import Upstreams

@Suite struct `What a network's resolver has said` {
  let loop = SimulatedLoop()
  let local: ScriptedLocalDNS
  let failing: ScriptedUpstream

  init() {
    local = ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "10.0.0.1")) }
    failing = ScriptedUpstream(on: loop) { _, _ in .failure() }
  }

  private func scene(_ mode: Configuration.Stale = .onFailure) -> ResolverScene {
    let scene = ResolverScene(on: loop, [failing], local: local) { $0.setStale(.tested(mode)) }
    scene.network.change(to: 1)
    return scene
  }

  @Test(arguments: [Configuration.Stale.off, .onFailure, .immediate])
  func `LocalDNS's substitute answer is not served on another network, not even stale`(mode: Configuration.Stale) throws
  {
    let scene = scene(mode)
    #expect(try scene.answer("www.example.com").addresses == ["10.0.0.1"])
    #expect(try scene.answer("www.example.com").addresses == ["10.0.0.1"])
    #expect(local.asked.count == 1)
    scene.network.change(to: 2)
    local.script = { _, _ in .silence }
    #expect(try scene.answer("www.example.com").responseCode == .servFail)
    // It counts where it was said, as long as it holds.
    scene.network.change(to: 1)
    #expect(try scene.answer("www.example.com").addresses == ["10.0.0.1"])
    scene.network.change(to: 2)
    local.script = { question, _ in .answer(.addresses(question.name, "10.9.9.9")) }
    loop.advance(by: .seconds(30))
    #expect(try scene.answer("www.example.com").addresses == ["10.9.9.9"])
  }

  @Test func `LocalDNS's substitute NXDOMAIN is not valid on another network`() throws {
    let scene = scene()
    local.script = { _, _ in .answer(.negative(.nxDomain, zone: name("com"))) }
    #expect(try scene.answer("www.example.com").responseCode == .nxDomain)
    scene.network.change(to: 2)
    local.script = { question, _ in .answer(.addresses(question.name, "10.9.9.9")) }
    #expect(try scene.answer("www.example.com").addresses == ["10.9.9.9"])
  }

  @Test func `the network's own names are answered on that network only`() throws {
    let scene = scene()
    for name in ["nas", "nas.lan"] {
      scene.network.change(to: 1)
      local.script = { question, _ in .answer(.addresses(question.name, "10.0.0.1")) }
      #expect(try scene.answer(name).addresses == ["10.0.0.1"])
      loop.advance(by: .seconds(301))
      local.script = { _, _ in .failure() }
      scene.network.change(to: 2)
      #expect(try scene.answer(name).responseCode == .servFail)
      scene.network.change(to: 1)
      #expect(try scene.answer(name).addresses == ["10.0.0.1"])
    }
  }

  @Test func `a held LocalDNS answer is dropped on another network, whose resolver is asked`() throws {
    let scene = scene()
    failing.script = { _, _ in .silence }
    let number = scene.ask("www.example.com")
    loop.advance(by: .milliseconds(1200))
    #expect(local.asked.count == 1)
    local.script = { question, _ in .answer(.addresses(question.name, "10.9.9.9")) }
    scene.network.change(to: 2)
    scene.resolver.assumeIsolated { $0.networkIsAnother() }
    loop.advance(by: .seconds(2))
    #expect(try scene.reply(number).message.addresses == ["10.9.9.9"])
    // It is that network's, although the question began on the one before.
    local.script = { _, _ in .silence }
    #expect(try scene.answer("www.example.com").addresses == ["10.9.9.9"])
    scene.network.change(to: 1)
    #expect(try scene.answer("www.example.com").responseCode == .servFail)
  }

  @Test(arguments: ["www.example.com", "nas.lan"])
  func `an answer in flight during a network change is not served on the new network`(text: String) throws {
    let scene = scene()
    local.script = { question, _ in .answer(.addresses(question.name, "10.0.0.1"), after: .milliseconds(400)) }
    let number = scene.ask(text)
    loop.advance(by: .milliseconds(200))
    #expect(local.asked.count == 1)
    local.script = { question, _ in .answer(.addresses(question.name, "10.9.9.9")) }
    scene.network.change(to: 2)
    scene.resolver.assumeIsolated { $0.networkIsAnother() }
    loop.advance(by: .seconds(3))
    #expect(try scene.reply(number).message.addresses == ["10.9.9.9"])
    local.script = { _, _ in .silence }
    scene.network.change(to: 1)
    #expect(try scene.answer(text).addresses.isEmpty)
  }

  @Test func `a held LocalDNS answer is served if the network is the same`() throws {
    let scene = scene()
    failing.script = { _, _ in .silence }
    let number = scene.ask("www.example.com")
    loop.advance(by: .milliseconds(1200))
    scene.resolver.assumeIsolated { $0.networkIsAnother() }
    loop.advance(by: .seconds(2))
    #expect(try scene.reply(number).message.addresses == ["10.0.0.1"])
    #expect(local.asked.count == 1)
  }

  @Test func `a held LocalDNS answer from before a sleep is not served after it`() throws {
    let scene = scene()
    failing.script = { _, _ in .silence }
    let number = scene.ask("www.example.com")
    loop.advance(by: .milliseconds(1200))
    #expect(local.asked.count == 1)
    loop.sleep(through: .seconds(3600))
    loop.advance(by: .zero)
    #expect(try scene.reply(number).message.responseCode == .servFail)
  }
}
