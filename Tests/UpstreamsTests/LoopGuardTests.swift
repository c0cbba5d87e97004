// LoopGuardTests.swift -- names that lead back to us, names that do not, and servers that may be ourselves.

import DNSWire
import EventLoop
import HTTPDNS
import LocalDNS
import LocalDNSTestSupport
import TestSupport
import Testing

@testable import Upstreams

/// A loop guard before a laboratory of resolvers.
private final class GuardScene: @unchecked Sendable {
  let loop = SimulatedLoop()
  let laboratory: Laboratory
  let lines = LogLines()
  let loopGuard: LoopGuard
  let upstream: LocalDNSUpstream
  let servers: [PlainResolver]

  init(_ addresses: [String], listeners: [String] = []) {
    laboratory = Laboratory(on: loop)
    let client = LocalDNSClient(over: laboratory)
    servers = addresses.map { PlainResolver(SocketAddress(text: $0)!) }
    loopGuard = LoopGuard(
      client, loop: loop, listeners: listeners.map { SocketAddress(text: $0)! }, logger: lines.logger)
    upstream = LocalDNSUpstream(
      client, on: loop, systemServers: servers, configured: [.system],
      loopGuard: loopGuard)
    for server in servers { laboratory.servers[server.address] = LabZone(["nas.lan": "192.0.2.9"]).server }
  }

  /// Probes all servers; the names that they were asked for.
  func probe() -> [DomainName] {
    laboratory.forget()
    loopGuard.probe(servers)
    loop.settle()
    return servers.compactMap { laboratory.queries[$0.address]?.last?.question.name }
  }

  func ask() -> (address: [UInt8]?, after: Duration) {
    let begin = loop.now
    let question = HTTPDNSQuestion(name: DomainName(text: "nas.lan")!, type: .a)
    let result = loop.run { [upstream] in
      await upstream.ask(question, [.system], timeout: .seconds(2))
    }
    return ((try? result.get())?.answer.answers.first?.rdata, loop.now - begin)
  }
}

@Suite struct `The loop guard` {
  private let two = ["192.0.2.1:53", "[2001:db8::1]:53"]

  @Test func `every server is asked for a name of its own, which is recognised in any case`() {
    let scene = GuardScene(two)
    let names = scene.probe()
    #expect(Set(names.map(\.parent)) == [scene.loopGuard.zone])
    #expect(Set(names).count == 2)
    #expect(scene.laboratory.queries[scene.servers[0].address]?.last?.question.type == .txt)
    scene.loopGuard.received(DomainName(unchecked: names[1].octets.map { (97...122).contains($0) ? $0 - 32 : $0 }))
    #expect(scene.upstream.addresses == [scene.servers[0]])
    let line = "LocalDNS server [2001:db8::1]:53 forwards our own queries back to us (loop); no longer used"
    #expect(scene.lines.all == ["error \(line)"])
    // Once is enough.
    scene.loopGuard.received(names[1])
    #expect(scene.lines.all.count == 1)
  }

  @Test func `a server cannot have another one excluded`() {
    let scene = GuardScene(two)
    for _ in 0..<20 {
      let known = scene.probe()[1]
      let (label, zone) = (known.octets.prefix(17), scene.loopGuard.zone.octets)
      // What the second server may conclude from its own name.
      var guesses = (0...255).map { [2] + Array("s\($0 % 10)".utf8) + zone }
      for place in 1..<17 {
        for digit in "0123456789abcdef".utf8 where digit != label[place] {
          var other = label
          other[place] = digit
          guesses.append(Array(other) + zone)
        }
      }
      guesses += [zone, label + known.octets, [0], Array(label.dropFirst(9)) + zone].map { Array($0) }
      for guess in guesses where DomainName(octets: guess) != nil {
        scene.loopGuard.received(DomainName(octets: guess)!)
      }
      #expect(scene.upstream.addresses == scene.servers)
    }
    #expect(scene.lines.all.isEmpty)
  }

  @Test func `a name counts for 5 s, also when others are probed meanwhile`() {
    let scene = GuardScene(two)
    let first = scene.probe()
    scene.loop.advance(by: .seconds(4))
    let second = scene.probe()
    #expect(Set(first + second).count == 4)
    scene.loopGuard.received(first[0])
    #expect(scene.upstream.addresses == [scene.servers[1]])
    scene.loop.advance(by: .seconds(2))
    scene.loopGuard.received(first[1])
    #expect(scene.upstream.addresses == [scene.servers[1]])
    scene.loop.advance(by: .seconds(4))
    scene.loopGuard.received(second[1])
    #expect(scene.upstream.addresses == [scene.servers[1]])
  }

  @Test func `another probe gives a server another chance`() {
    let scene = GuardScene(two)
    scene.loopGuard.received(scene.probe()[0])
    #expect(scene.upstream.addresses == [scene.servers[1]])
    _ = scene.probe()
    #expect(scene.upstream.addresses == scene.servers)
  }

  @Test func `two programs have different zones`() {
    let zones = (0..<100).map { _ in GuardScene([]).loopGuard.zone }
    #expect(Set(zones).count == 100)
    #expect(zones.allSatisfy { $0.octets.count == 1 + 16 + 1 + 7 + 1 })
  }
}

@Suite struct `A resolver at an address where httpdnsd may be listening` {
  private let docker = ["127.0.0.11:53"]
  private let wildcards = ["0.0.0.0:53", "[::]:53"]

  @Test func `is used as soon as it has answered a probe, and questions wait for that`() {
    let scene = GuardScene(docker, listeners: wildcards)
    _ = scene.probe()
    #expect(scene.upstream.addresses.isEmpty)
    #expect(scene.upstream.hasServers([.system]))
    #expect(scene.ask() == ([192, 0, 2, 9], .milliseconds(20)))
    let line = "LocalDNS server 127.0.0.11:53 may be httpdnsd itself; it is used unless a probe comes back within 1 s"
    #expect(scene.lines.all == ["info \(line)"])
    // Later probes do not hold it up again.
    _ = scene.probe()
    #expect(scene.ask() == ([192, 0, 2, 9], .milliseconds(10)))
    #expect(scene.lines.all.count == 1)
  }

  @Test func `is used if its probe has not come back for a second`() {
    let scene = GuardScene(docker, listeners: wildcards)
    let zone = scene.loopGuard.zone
    scene.laboratory.servers[scene.servers[0].address] = LabServer { query in
      query.question.name.isAtOrBelow(zone) ? [] : LabZone(["nas.lan": "192.0.2.9"]).server.habit(query)
    }
    _ = scene.probe()
    #expect(scene.ask() == ([192, 0, 2, 9], .milliseconds(1010)))
  }

  @Test func `is not used if its probe comes back, and is not asked anything else before`() {
    let scene = GuardScene(docker, listeners: wildcards)
    scene.laboratory.servers[scene.servers[0].address] = LabServer { query in
      scene.loopGuard.received(query.question.name)
      return [.reply(query.response(.servFail))]
    }
    _ = scene.probe()
    #expect(scene.ask() == (nil, .zero))
    #expect(!scene.upstream.hasServers([.system]))
    #expect(scene.laboratory.queries.values.joined().allSatisfy { $0.question.type == .txt })
  }

  @Test func `is any other one if the listeners are elsewhere`() {
    for listeners in [["127.0.0.1:53"], ["0.0.0.0:5353"], []] {
      let scene = GuardScene(docker, listeners: listeners)
      _ = scene.probe()
      #expect(scene.ask() == ([192, 0, 2, 9], .milliseconds(10)))
    }
  }
}
