// MannerTests.swift -- what is remembered of how a resolver can be asked: EDNS, TCP, truncated answers.

import DNSWire
import EventLoop
import Glibc
import LocalDNSTestSupport
import TestSupport
import Testing

@testable import LocalDNS

@Suite struct `EDNS with a resolver` {
  private static let dropping = LabServer { $0.hasEDNS ? [] : LabServer.address(1).habit($0) }

  @Test func `that drops it costs one question 400 ms in 10 min`() {
    let scene = LabScene(Self.dropping)
    #expect(scene.ask("a.example") == (0, .milliseconds(410)))
    #expect(scene.queries(0).map(\.hasEDNS) == [true, false])
    for _ in 0..<50 {
      #expect(scene.ask("b.example") == (0, .milliseconds(10)))
      scene.loop.advance(by: .seconds(10))
    }
    #expect(scene.queries(0).dropFirst().allSatisfy { !$0.hasEDNS })
    scene.loop.advance(by: .seconds(100))
    #expect(scene.ask("c.example") == (0, .milliseconds(410)))
    #expect(scene.ask("c.example") == (0, .milliseconds(10)))
  }

  @Test func `that drops it is learned of behind another one that answers`() {
    let scene = LabScene(Self.dropping, .address(2))
    #expect(scene.ask("a.example").place == 1)
    scene.loop.advance(by: .seconds(1))
    #expect(scene.ask("b.example") == (0, .milliseconds(10)))
  }

  @Test func `that supports it goes on when a datagram is lost`() {
    let scene = LabScene(.address(1))
    scene.ask("a.example")
    let lossy = LabServer { $0.count == 0 ? [] : LabServer.address(1).habit($0) }
    scene.set(0, lossy)
    scene.laboratory.forget()
    #expect(scene.ask(Question(name: DomainName(text: "b.example")!, type: .a), dnssecOK: true).result.addresses != nil)
    #expect(scene.queries(0).map(\.message.edns?.dnssecOK) == [true, true])
  }

  @Test func `that supports it is not given up for a name with which it fails`() {
    let scene = LabScene(.address(1))
    scene.ask("a.example")
    scene.set(
      0, LabServer { $0.hasEDNS ? [.octets(LabKind.header(of: $0, .formErr))] : LabServer.address(1).habit($0) })
    #expect(scene.ask("b.example") == (0, .milliseconds(20)))
    scene.set(0, .address(1))
    scene.laboratory.forget()
    scene.ask("c.example")
    #expect(scene.queries(0).map(\.hasEDNS) == [true])
  }

  @Test func `that supports it is not asked twice for SERVFAIL`() {
    let scene = LabScene(.code(.servFail))
    for _ in 0..<3 { scene.ask("a.example") }
    // An OPT record in the reply shows that it does.
    #expect(scene.queries(0).map(\.hasEDNS) == [true, true, true])
    let result = scene.ask(Question(name: DomainName(text: "a.example")!, type: .a)).result
    #expect(result.failure?.reason == .responseCode(.servFail))
  }

  @Test func `is tried again on another network`() {
    let scene = LabScene(Self.dropping)
    scene.ask("a.example")
    scene.client.networkHasChanged()
    scene.set(0, .address(1))
    scene.laboratory.forget()
    scene.ask("b.example")
    #expect(scene.queries(0).map(\.hasEDNS) == [true])
  }
}

@Suite struct `A resolver without UDP` {
  private static let server = LabServer { $0.overTCP ? LabServer.address(1).habit($0) : [] }

  @Test func `is asked over TCP after two datagrams, and at once from then on`() {
    let scene = LabScene(Self.server)
    #expect(scene.ask("a.example") == (0, .milliseconds(1010)))
    #expect(scene.queries(0).map(\.overTCP) == [false, false, true])
    #expect(scene.ask("b.example") == (0, .milliseconds(10)))
    #expect(scene.client.counters.demotions == 0)
    // UDP is tried again after 10 min.
    scene.loop.advance(by: .seconds(600))
    scene.set(0, .address(1))
    scene.laboratory.forget()
    scene.ask("c.example")
    #expect(scene.queries(0).map(\.overTCP) == [false])
  }

  @Test func `is learned of behind another one that answers`() {
    let scene = LabScene(Self.server, .address(2))
    #expect(scene.ask("a.example").place == 1)
    scene.loop.advance(by: .seconds(2))
    #expect(scene.ask("b.example") == (0, .milliseconds(10)))
  }

  @Test func `is asked over UDP again as soon as TCP fails`() {
    let scene = LabScene(Self.server)
    scene.ask("a.example")
    scene.set(0, LabServer { $0.overTCP ? [.failure(.network(ECONNREFUSED))] : LabServer.address(1).habit($0) })
    #expect(scene.ask("b.example") == (0, .milliseconds(20)))
    scene.laboratory.forget()
    #expect(scene.ask("c.example") == (0, .milliseconds(10)))
    #expect(scene.queries(0).map(\.overTCP) == [false])
  }

  @Test func `is asked over TCP although a name has no answer`() {
    let scene = LabScene(Self.server)
    scene.ask("a.example")
    scene.set(0, LabServer { "\($0.question.name)".hasPrefix("dead") ? [] : Self.server.habit($0) })
    for number in 0..<3 {
      #expect(scene.ask("dead\(number).example").place == nil)
      #expect(scene.ask("n\(number).example") == (0, .milliseconds(10)))
    }
    let others = scene.queries(0).filter { "\($0.question.name)".hasPrefix("n") }
    #expect(others.count == 3 && others.allSatisfy { $0.overTCP })
  }

  @Test func `is asked over UDP too where TCP falls silent`() {
    let scene = LabScene(Self.server)
    scene.ask("a.example")
    scene.set(0, LabServer { $0.overTCP ? [] : LabServer.address(1).habit($0) })
    #expect(scene.ask("b.example") == (0, .milliseconds(1010)))
    #expect(scene.ask("c.example") == (0, .milliseconds(10)))
  }

  @Test func `is not one that is slow with a name`() {
    let scene = LabScene(.address(1))
    scene.ask("a.example")
    scene.set(0, LabServer { $0.overTCP ? LabServer.address(1).habit($0) : [] })
    scene.ask("slow.example")
    scene.set(0, .address(1))
    scene.laboratory.forget()
    scene.ask("c.example")
    #expect(scene.queries(0).map(\.overTCP) == [false])
  }

  @Test func `costs a dead one nothing: no connection within 10 s of one that failed`() {
    let scene = LabScene(LabServer { $0.overTCP ? [.failure(.network(ECONNREFUSED))] : [] })
    scene.ask("a.example")
    scene.ask("b.example")
    #expect(scene.queries(0).map(\.overTCP) == [false, false, true, false, false])
    scene.loop.advance(by: .seconds(10))
    scene.ask("c.example")
    #expect(scene.queries(0).last?.overTCP == true)
  }

  @Test func `that is only slow with a name is asked for long answers over TCP meanwhile`() {
    let scene = LabScene(LabServer { $0.question.type == .txt ? [] : LabZone.usual.server.habit($0) })
    scene.ask("slow.example", .txt)
    let (result, time) = scene.ask(Question(name: DomainName(text: "many.example")!, type: .a))
    #expect(result.addresses?.count == 100)
    #expect(time == .milliseconds(20))
  }

  @Test func `that the configuration names is never asked over UDP`() {
    var scene = LabScene(Self.server)
    scene.resolvers = [PlainResolver(scene.resolvers[0].address, isOverTCP: true)]
    #expect(scene.ask("a.example") == (0, .milliseconds(10)))
    scene.set(0, LabServer { $0.overTCP ? [.failure(.network(ECONNREFUSED))] : LabServer.address(1).habit($0) })
    let result = scene.ask(Question(name: DomainName(text: "a.example")!, type: .a)).result
    #expect(result.failure?.reason == .network(ECONNREFUSED))
    #expect(scene.queries(0).map(\.overTCP) == [true, true])
  }
}

@Suite struct `A truncated answer` {
  private static let many = Question(name: DomainName(text: "many.example")!, type: .a)

  /// A sound resolver, but over TCP it does this.
  private static func server(_ stream: LabAction?) -> LabServer {
    LabServer { $0.overTCP ? stream.map { [$0] } ?? [] : LabZone.usual.server.habit($0) }
  }

  @Test(arguments: [(LabAction.failure(.network(ECONNREFUSED)), 20), (.failure(.closed), 20), (nil, 910)])
  func `is given without the missing addresses if TCP fails`(stream: LabAction?, milliseconds: Int) {
    let scene = LabScene(Self.server(stream))
    let (result, time) = scene.ask(Self.many)
    #expect(result.answer?.isTruncated == true)
    #expect((60..<100).contains(result.addresses?.count ?? 0))
    #expect(result.answer?.message.header.tc == false)
    #expect(time == .milliseconds(milliseconds))
    // The client repeats it over TCP, and does not wait.
    let again = scene.ask(Self.many)
    #expect(again.result.answer?.isTruncated == true)
    #expect(again.after == .milliseconds(10))
    scene.loop.advance(by: .seconds(10))
    scene.set(0, LabZone.usual.server)
    #expect(scene.ask(Self.many).result.addresses?.count == 100)
  }

  @Test func `gives way to a whole one of the next resolver, not to a negative one`() {
    let scene = LabScene(Self.server(nil), LabZone.usual.server)
    let (result, time) = scene.ask(Self.many)
    #expect(result.answer?.isTruncated == false && result.addresses?.count == 100)
    #expect(time == .milliseconds(320))
    for second in [LabServer.denying, .code(.refused), .silent] {
      let scene = LabScene(Self.server(.failure(.closed)), second)
      #expect(scene.ask(Self.many).result.answer?.isTruncated == true)
    }
  }

  @Test func `of the second resolver gives way to a negative one of the first`() {
    let slow = LabServer { [.after(.milliseconds(600), .reply(LabZone().response(to: $0)))] }
    let scene = LabScene(slow, Self.server(.failure(.closed)))
    #expect(scene.ask(Self.many).result.code == .nxDomain)
  }

  @Test func `of another type, or without an address, is a failure`() {
    let empty = LabServer { query in
      guard !query.overTCP else { return [.failure(.closed)] }
      var response = query.response()
      response.header.tc = true
      if query.question.type == .txt { response.answers = LabZone.usual.response(to: query).answers }
      return [.reply(response)]
    }
    for (name, type) in [("many.example", RecordType.a), ("text.example", .txt)] {
      let result = LabScene(empty).ask(Question(name: DomainName(text: name)!, type: type)).result
      #expect(result.failure?.reason == .truncated)
    }
  }

  @Test func `over TCP is given as well`() {
    let server = LabServer { query in
      var response = LabZone.usual.response(to: query)
      response.header.tc = true
      response.answers = Array(response.answers.prefix(7))
      return [.reply(response)]
    }
    let result = LabScene(server).ask(Self.many).result
    #expect(result.answer?.isTruncated == true && result.addresses?.count == 7)
  }

  @Test func `that is cut off has the records that arrived in whole`() {
    for length in 13..<300 {
      let server = LabServer { query in
        guard !query.overTCP else { return [.failure(.closed)] }
        return [.octets(Array(try! LabZone.usual.response(to: query).compose().prefix(length)))]
      }
      let result = LabScene(server).ask(Self.many).result
      // The header, the question, and 16 octets for each record.
      let whole = max(0, (length - 12 - 18) / 16)
      #expect(result.addresses?.count ?? 0 == whole, "\(length)")
      if whole == 0 { #expect(result.failure?.reason == .truncated, "\(length)") }
    }
  }
}
