// KeepFreshTests.swift -- the names of `refresh.keep`: fetched at start, at 75 % of their TTL, and after failures.

import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import Forwarder

@Suite struct KeepFreshTests {
  let loop = SimulatedLoop()
  private let begin = SimulatedLoop().now

  private func keep(_ scene: ResolverScene, _ names: [String]) -> KeepFresh {
    let keepFresh = KeepFresh(
      names.map { (HTTPDNSQuestion(name: name($0), type: .a), 0) }, fraction: 0.75, shortest: .seconds(10),
      resolver: scene.resolver, loop: loop)
    keepFresh.start()
    return keepFresh
  }

  private func seconds(_ upstream: ScriptedUpstream) -> [Double] {
    upstream.asked.map { Double(($0.at - begin).nanoseconds) / 1e9 }
  }

  @Test func `a name is fetched at start and again at 75 % of its TTL, so that its users never wait`() throws {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: 100), after: .zero)
    }
    let scene = ResolverScene(on: loop, [provider])
    let keepFresh = keep(scene, ["www.example.com"])
    loop.settle()
    for _ in 0..<1000 {
      loop.advance(by: .seconds(1))
      #expect(try scene.reply(scene.ask("www.example.com")).after == .zero)
    }
    #expect(seconds(provider) == (0...13).map { Double($0) * 75 })
    #expect(loop.timers.count == 1)
    withExtendedLifetime(keepFresh) {}
  }

  @Test(arguments: [(5, 10), (9, 10), (10, 7.5), (12, 9), (3600, 2700)] as [(UInt32, Double)])
  func `a TTL below the shortest is not refreshed ahead`(ttl: UInt32, pause: Double) {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: ttl), after: .zero)
    }
    let keepFresh = keep(ResolverScene(on: loop, [provider]), ["www.example.com"])
    loop.advance(by: .milliseconds(pause * 3000 + 1))
    #expect(seconds(provider) == [0, pause, pause * 2, pause * 3])
    withExtendedLifetime(keepFresh) {}
  }

  @Test func `after failures the waits double up to five minutes, and a success ends them`() {
    let provider = ScriptedUpstream(on: loop) { question, number in
      number < 8 ? .failure(after: .zero) : .answer(.addresses(question.name, "192.0.2.1", ttl: 100), after: .zero)
    }
    let keepFresh = keep(ResolverScene(on: loop, [provider]), ["www.example.com"])
    loop.advance(by: .seconds(1700))
    #expect(seconds(provider) == [0, 10, 30, 70, 150, 310, 610, 910, 1210, 1285, 1360, 1435, 1510, 1585, 1660])
    withExtendedLifetime(keepFresh) {}
  }

  @Test func `a failed refresh leaves what is kept, and a client's question joins a refresh`() throws {
    let provider = ScriptedUpstream(on: loop) { question, number in
      number == 1
        ? .failure(after: .zero) : .answer(.addresses(question.name, "192.0.2.1", ttl: 100), after: .milliseconds(200))
    }
    let scene = ResolverScene(on: loop, [provider])
    let keepFresh = keep(scene, ["www.example.com"])
    let joined = scene.ask("www.example.com")
    loop.advance(by: .seconds(1))
    #expect(try scene.reply(joined).message.addresses == ["192.0.2.1"])
    #expect(provider.asked.count == 1)
    loop.advance(by: .seconds(75))
    #expect(provider.asked.count == 2)
    #expect(try scene.reply(scene.ask("www.example.com")).message.answers.map(\.ttl) == [25])
    loop.advance(by: .seconds(10))
    #expect(provider.asked.count == 3)
    #expect(try scene.reply(scene.ask("www.example.com")).message.answers[0].ttl > 95)
    withExtendedLifetime(keepFresh) {}
  }

  @Test func `eight are fetched at once, and all have their turn`() {
    let provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, "192.0.2.1", ttl: 3600), after: .milliseconds(100))
    }
    let scene = ResolverScene(on: loop, [provider])
    let keepFresh = keep(scene, (0..<50).map { "host\($0).example" })
    var most = 0
    for _ in 0..<100 {
      loop.advance(by: .milliseconds(10))
      most = max(most, scene.underWay)
    }
    #expect(most == 8)
    #expect(provider.asked.count == 50)
    withExtendedLifetime(keepFresh) {}
  }
}
