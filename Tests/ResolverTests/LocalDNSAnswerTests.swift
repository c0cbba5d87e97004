// LocalDNSAnswerTests.swift -- what clients get of plain resolvers, whatever these are like.

import DNSWire
import EventLoop
import LocalDNS
import LocalDNSTestSupport
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// The resolver before a laboratory of plain ones, which are all that it has.
private struct Scene {
  let loop = SimulatedLoop()
  let laboratory: Laboratory
  let scene: ResolverScene

  /// - Parameter setUp: puts resolvers into the laboratory and returns them.
  init(_ setUp: (Laboratory) -> [PlainResolver]) {
    laboratory = Laboratory(on: loop)
    let local = LocalDNSUpstream(
      LocalDNSClient(over: laboratory), on: loop, systemServers: setUp(laboratory),
      configured: [.system])
    scene = ResolverScene(on: loop, [], local: local)
  }

  init(_ servers: LabServer...) {
    self.init { laboratory in
      servers.enumerated().map { place, server in
        let resolver = PlainResolver(SocketAddress(text: "192.0.2.\(place + 1):53")!)
        laboratory.servers[resolver.address] = server
        return resolver
      }
    }
  }
}

@Suite struct `Answers of plain resolvers` {
  @Test(arguments: LabKind.all) func `are the same through every kind of resolver`(kind: LabKind) throws {
    let (odd, sound) = (Scene { kind.setUp(in: $0) }, Scene { LabKind.sound.setUp(in: $0) })
    for question in LabZone.usualQuestions {
      let (asked, type) = (question.name.text, question.type)
      var seen: [Message] = []
      for scene in [odd, sound] {
        var answer = try scene.scene.answer(asked, type)
        answer.id = 0
        // How long a negative answer is cached depends on who gave it.
        for place in answer.authorities.indices { answer.authorities[place].ttl = 1 }
        seen.append(answer)
      }
      #expect(seen[0] == seen[1], "\(question)")
      guard !seen[1].answers.isEmpty, seen[1].authorities.isEmpty else { continue }
      // The second time from the cache.
      odd.loop.advance(by: .seconds(3))
      let count = odd.laboratory.queries.values.joined().count
      #expect(try odd.scene.answer(asked, type).answers.count == seen[1].answers.count)
      #expect(odd.laboratory.queries.values.joined().count == count, "\(question)")
    }
  }

  /// A router that alone knows the names of the LAN, and does something else with some questions.
  private func router(_ habit: @escaping @Sendable (LabQuery) -> [LabAction]?) -> LabServer {
    let names = Dictionary(uniqueKeysWithValues: (0..<200).map { ("n\($0).lan", "192.168.1.\($0)") })
    let sound = LabZone(names).server
    return LabServer { habit($0) ?? sound.habit($0) }
  }

  private static let habits: [(String, @Sendable (LabQuery) -> [LabAction]?)] = [
    ("drops HTTPS", { $0.question.type == .https ? [] : nil }),
    ("drops AAAA", { $0.question.type == .aaaa ? [] : nil }),
    ("drops all types but A", { $0.question.type != .a ? [] : nil }),
    ("drops every second query", { $0.count % 2 == 0 ? [] : nil }),
    ("refuses AAAA", { $0.question.type == .aaaa ? [.reply($0.response(.refused))] : nil }),
    ("answers AAAA with a header", { $0.question.type == .aaaa ? [.octets(LabKind.header(of: $0, .refused))] : nil }),
    ("breaks AAAA", { $0.question.type == .aaaa ? [.reply($0.message)] : nil }),
    ("cuts AAAA off", { $0.question.type == .aaaa ? [.octets(Array(LabKind.header(of: $0, .noError)[..<6]))] : nil }),
  ]

  @Test(arguments: habits.map(\.0))
  func `names of the LAN are right beside a resolver that denies them, one question spoilt each second`(
    name: String
  ) throws {
    let habit = try #require(Self.habits.first { $0.0 == name }).1
    let scene = Scene(router(habit), LabZone(["www.example": "203.0.113.80"]).server)
    var asked: [(number: Int, host: Int)] = []
    for second in 0..<40 {
      for type in [RecordType.https, .aaaa] { scene.scene.ask("n\(second).lan", type) }
      asked.append((scene.scene.ask("n\(second).lan"), second))
      // The same name while the answer to AAAA is cached, and one that was asked for before.
      scene.loop.advance(by: .milliseconds(500))
      asked.append((scene.scene.ask("n\(second).lan"), second))
      scene.scene.ask("n\(second / 2).lan", .aaaa)
      asked.append((scene.scene.ask("n\(second / 2).lan"), second / 2))
      scene.loop.advance(by: .milliseconds(500))
    }
    scene.loop.advance(by: .seconds(5))
    for (number, host) in asked {
      #expect(try scene.scene.reply(number).message.addresses == ["192.168.1.\(host)"])
    }
  }

  @Test func `a negative answer that came out of order is cached for a second, and for its type alone`() throws {
    let dropping = router { $0.question.type == .aaaa ? [] : nil }
    let scene = Scene(dropping, LabZone().server)
    let denied = try scene.scene.answer("n1.lan", .aaaa)
    #expect(denied.responseCode == .nxDomain)
    #expect(denied.authorities.map(\.ttl) == [1])
    // The client asked for AAAA first.
    #expect(try scene.scene.answer("n1.lan").addresses == ["192.168.1.1"])
    let count = scene.laboratory.queries.values.joined().count
    #expect(try scene.scene.answer("n1.lan", .aaaa).responseCode == .nxDomain)
    #expect(scene.laboratory.queries.values.joined().count == count)
    scene.loop.advance(by: .seconds(1))
    // By now it is known that the name exists.
    #expect(try scene.scene.answer("n1.lan", .aaaa).responseCode == .noError)
    #expect(scene.laboratory.queries.values.joined().count > count)
  }

  @Test func `a truncated answer is sent with TC over UDP, without over TCP, and is not cached`() throws {
    let server = LabServer { $0.overTCP ? [.failure(.closed)] : LabZone.usual.server.habit($0) }
    let scene = Scene(server)
    for _ in 0..<2 {
      let answer = try scene.scene.answer("many.example")
      #expect(answer.header.tc)
      #expect((60..<100).contains(answer.addresses.count))
    }
    #expect(scene.laboratory.queries.values.joined().count { !$0.overTCP } == 2)
    #expect(scene.scene.cache.statistics.entries == 0)
    // A whole answer that is in the cache stays there.
    #expect(try scene.scene.answer("www.example").header.tc == false)
  }

  @Test func `the reason of a failure is what came, and no answer in time only if nothing did`() throws {
    let scene = Scene(LabServer { [.reply($0.message)] }, LabServer { _ in [] })
    #expect(try scene.scene.answer("www.example").responseCode == .servFail)
    let failure = try #require(scene.scene.toldFailures.first?.failure)
    #expect(failure.steps == ["192.0.2.1:53: a reply that is no response", "192.0.2.2:53: no answer in time"])
  }
}
