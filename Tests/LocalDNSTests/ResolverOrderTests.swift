// ResolverOrderTests.swift -- which resolver is asked next, whose answer counts, and which one is asked last.

import DNSWire
import EventLoop
import Glibc
import LocalDNSTestSupport
import TestSupport
import Testing

@testable import LocalDNS

@Suite struct `The order of resolvers` {
  @Test func `the second one is asked beside the first after 300 ms, and its data is given`() {
    let scene = LabScene(.silent, .address(2))
    #expect(scene.ask("www.example") == (1, .milliseconds(310)))
    #expect(scene.queries(1)[0].at - scene.queries(0)[0].at == .milliseconds(300))
  }

  @Test func `data of the first one is given before that of the second`() {
    let scene = LabScene(.address(1, latency: .milliseconds(290)), .address(2))
    #expect(scene.ask("www.example") == (0, .milliseconds(290)))
    #expect(scene.queries(1).isEmpty)
  }

  @Test func `a negative answer of the second waits for the first, which is right`() {
    let scene = LabScene(.address(1, latency: .milliseconds(900)), .denying)
    let (result, time) = scene.ask(Question(name: DomainName(text: "nas.lan")!, type: .a))
    #expect(result.addresses == [[192, 0, 2, 1]])
    #expect(result.answer?.isOutOfOrder == false)
    #expect(time == .milliseconds(900))
  }

  @Test func `a negative answer of the second waits a second at most, and says that it came out of order`() {
    let scene = LabScene(.silent, .denying)
    let (result, time) = scene.ask(Question(name: DomainName(text: "nas.lan")!, type: .a))
    #expect(result.code == .nxDomain)
    #expect(result.answer?.isOutOfOrder == true)
    #expect(time == .milliseconds(1310))
  }

  @Test(arguments: [
    LabServer.code(.servFail), .code(.refused), LabServer { [.octets(LabKind.header(of: $0, .nxDomain))] },
    LabServer { [.reply($0.message)] }, LabServer { _ in [.failure(.network(ECONNREFUSED))] },
  ])
  func `a negative answer is given at once after a failure of the first, which may still have other data`(
    first: LabServer
  ) {
    let scene = LabScene(first, .denying)
    let (result, time) = scene.ask(Question(name: DomainName(text: "www.example")!, type: .a))
    #expect(result.code == .nxDomain)
    #expect(result.answer?.isOutOfOrder == true)
    #expect(time <= .milliseconds(30))
  }

  @Test func `a negative answer is in order if there is no way to the first`() {
    let scene = LabScene(LabServer { _ in [.failure(.network(ENETUNREACH))] }, .denying)
    #expect(scene.ask(Question(name: DomainName(text: "www.example")!, type: .a)).result.answer?.isOutOfOrder == false)
  }

  @Test(arguments: [LabServer.silent, .code(.refused), .code(.notImp), LabServer { [.reply($0.message)] }])
  func `a name that the first has given data of exists, whatever the second says`(other: LabServer) {
    let router = LabServer { query in
      query.question.type == .a ? LabServer.address(1).habit(query) : other.habit(query)
    }
    let scene = LabScene(router, .denying)
    #expect(scene.ask("nas.lan").place == 0)
    let (result, _) = scene.ask(Question(name: DomainName(text: "NAS.lan")!, type: .aaaa))
    #expect(result.code == .noError)
    #expect(result.answer?.message.answers.isEmpty == true)
    #expect(result.answer?.isOutOfOrder == true)
    // That says nothing about other names, and nothing on another network.
    #expect(scene.ask(Question(name: DomainName(text: "no.lan")!, type: .aaaa)).result.code == .nxDomain)
    scene.client.networkHasChanged()
    #expect(scene.ask(Question(name: DomainName(text: "nas.lan")!, type: .aaaa)).result.code == .nxDomain)
  }

  @Test func `NXDOMAIN of the first is its answer, though it had data of the name before`() {
    let scene = LabScene(.address(1), .silent)
    scene.ask("nas.lan")
    scene.set(0, .denying)
    let (result, time) = scene.ask(Question(name: DomainName(text: "nas.lan")!, type: .a))
    #expect(result.code == .nxDomain)
    #expect(result.answer?.isOutOfOrder == false)
    #expect(time == .milliseconds(10))
  }

  @Test func `no third resolver is asked while a negative answer waits for the first`() {
    let scene = LabScene(.silent, .denying, .address(3))
    #expect(scene.ask("nas.lan") == (1, .milliseconds(1310)))
    #expect(scene.queries(2).isEmpty)
  }

  @Test func `a failure leads on at once, and the failures are told one by one`() {
    let scene = LabScene(.code(.refused), LabServer { [.reply($0.message)] }, .code(.servFail))
    let (result, time) = scene.ask(Question(name: DomainName(text: "www.example")!, type: .a))
    #expect(result.failure?.reason == .responseCode(.servFail))
    #expect(
      result.failure?.steps.map(\.reason) == [
        .responseCode(.refused), .unusable(.noResponse), .responseCode(.servFail),
      ])
    #expect(result.failure?.steps.map(\.server) == scene.resolvers)
    #expect(time == .milliseconds(30))
  }

  @Test func `a response to which the caller objects leads on`() {
    let scene = LabScene(.address(1), .address(2))
    let result = scene.loop.run { [scene] in
      await scene.client.ask(
        Question(name: DomainName(text: "www.example")!, type: .a), dnssecOK: false, checkingDisabled: false,
        servers: scene.resolvers, timeout: .seconds(1)
      ) { $0.answers[0].rdata == [192, 0, 2, 1] ? "one too few" : nil }
    }
    #expect(result.addresses == [[192, 0, 2, 2]])
    let alone = scene.loop.run { [scene] in
      await scene.client.ask(
        Question(name: DomainName(text: "www.example")!, type: .a), dnssecOK: false, checkingDisabled: false,
        servers: [scene.resolvers[0]], timeout: .seconds(1)
      ) { _ in "one too few" }
    }
    #expect(alone.failure?.reason == .unusable(.content("one too few")))
  }

  @Test func `an empty answer of a resolver that resolves nothing counts if no other has one`() {
    let lame = LabServer { query in
      var response = query.response()
      response.header.ra = false
      return [.reply(response)]
    }
    for second in [LabServer.address(2), .denying] {
      #expect(LabScene(lame, second).ask("www.example") == (1, .milliseconds(20)))
    }
    for second in [LabServer.code(.servFail), .silent] {
      let (result, _) = LabScene(lame, second).ask(Question(name: DomainName(text: "www.example")!, type: .a))
      #expect(result.code == .noError && result.answer?.isOutOfOrder == true)
    }
    #expect(LabScene(lame).ask("www.example") == (0, .milliseconds(10)))
  }

  @Test func `an empty answer with RA, AA or an SOA record is one`() {
    for change: @Sendable (inout Message) -> Void in [
      { $0.header.ra = true }, { $0.header.aa = true },
      { $0.authorities = [ResourceRecord(owner: .root, type: .soa, ttl: 1, rdata: [UInt8](repeating: 0, count: 22))] },
    ] {
      let first = LabServer { query in
        var response = query.response()
        response.header.ra = false
        change(&response)
        return [.reply(response)]
      }
      #expect(LabScene(first, .address(2)).ask("www.example") == (0, .milliseconds(10)))
    }
  }

  @Test(arguments: [1, 4, 9]) func `the time is bounded for any number of silent resolvers`(count: Int) {
    var scene = LabScene()
    scene.resolvers = (1...count).map { PlainResolver(SocketAddress(text: "198.51.100.\($0):53")!) }
    #expect(scene.ask("www.example", timeout: .milliseconds(120)) == (nil, .milliseconds(120)))
    #expect(scene.ask("www.example", timeout: .zero) == (nil, .zero))
  }

  @Test func `three resolvers are waited for at once, and the earliest one makes room`() {
    var scene = LabScene()
    scene.resolvers = (1...8).map { PlainResolver(SocketAddress(text: "198.51.100.\($0):53")!) }
    for place in 0..<7 { scene.set(place, .silent) }
    scene.set(7, .address(8))
    #expect(scene.ask("www.example") == (7, .milliseconds(2110)))
    for place in 0..<8 { #expect(!scene.queries(place).isEmpty) }
    scene.set(2, .address(3, latency: .milliseconds(800)))
    scene.set(7, .silent)
    scene.client.networkHasChanged()
    #expect(scene.ask("www.example") == (2, .milliseconds(1400)))
  }
}

@Suite struct `A silent resolver` {
  /// Asks for different names, one in each interval, and gives the places that answered.
  @discardableResult
  private func ask(_ scene: LabScene, _ count: Int, every interval: Duration = .seconds(1)) -> [Int?] {
    (0..<count).map { _ in
      let begin = scene.loop.now
      let place = scene.ask("n\(begin.nanoseconds).example").place
      scene.loop.advance(by: interval - (scene.loop.now - begin))
      return place
    }
  }

  @Test func `is asked last after three different questions and 2 s without a sign of life`() {
    let scene = LabScene(.silent, .address(2))
    ask(scene, 3)
    #expect(Set(scene.queries(0).map(\.question)).count == 3 && scene.client.counters.demotions == 0)
    #expect(scene.ask("www.example") == (1, .milliseconds(10)))
    #expect(scene.client.counters.demotions == 1)
    // The others fail, and it is asked beside them.
    scene.set(1, .code(.refused))
    scene.set(0, .address(1))
    #expect(scene.ask("again.example") == (0, .milliseconds(10)))
    // It has given a sign of life.
    #expect(scene.ask("first.example") == (0, .milliseconds(10)))
  }

  @Test func `is not one that has said nothing to fewer questions, or for less time`() {
    let scene = LabScene(.silent, .address(2))
    for _ in 0..<10 { #expect(scene.ask("www.example") == (1, .milliseconds(310))) }
    #expect(scene.ask("next.example") == (1, .milliseconds(310)))
    let other = LabScene(.silent, .address(2))
    ask(other, 6, every: .milliseconds(320))
    #expect(other.client.counters.demotions == 0)
  }

  @Test func `is not one that drops a type or loses datagrams`() {
    let scene = LabScene(
      LabServer { query in query.question.type == .a ? LabServer.address(1).habit(query) : [] }, .denying)
    for second in 0..<40 {
      scene.ask("n\(second).example", .https)
      scene.ask("n\(second).example", .aaaa)
      #expect(scene.ask("n\(second).example", .a) == (0, .milliseconds(10)))
    }
    #expect(scene.client.counters.demotions == 0)
  }

  @Test(arguments: [350, 600, 1100, 1900]) func `is not one that is slower than the next`(latency: Int) {
    let scene = LabScene(.address(1, latency: .milliseconds(latency)), .address(2))
    #expect(Set(ask(scene, 40, every: .milliseconds(500))) == [1])
    #expect(scene.client.counters.demotions == 0)
    // Nor does it lose the names that only it has.
    scene.set(1, .denying)
    if latency < 1300 { #expect(scene.ask("nas.lan") == (0, .milliseconds(latency))) }
  }

  @Test(arguments: [
    LabServer.code(.servFail), LabServer { [.reply($0.message)] },
    LabServer { [.octets(LabKind.header(of: $0, .refused))] },
    LabServer { [.octets([UInt8($0.message.id >> 8), UInt8($0.message.id & 0xFF)])] },
  ])
  func `is not one that sends what cannot be used`(first: LabServer) {
    let scene = LabScene(first, .address(2))
    ask(scene, 10)
    #expect(scene.client.counters.demotions == 0)
  }

  @Test func `is asked beside the others, and no client waits for it`() {
    let scene = LabScene(.silent, .address(2))
    ask(scene, 3)
    scene.laboratory.forget()
    for _ in 0..<40 {
      let (place, time) = scene.ask("n\(scene.loop.now.nanoseconds).example")
      #expect(place == 1 && time == .milliseconds(10))
      scene.loop.advance(by: .milliseconds(240))
    }
    #expect(Set(scene.queries(0).map(\.question)).count == 40)
    scene.set(0, .address(1))
    #expect(ask(scene, 2) == [0, 0])
  }

  @Test func `that is silent for some names only gets the others again at once`() {
    let first = LabServer { query in
      "\(query.question.name)".hasPrefix("dead") ? [] : LabServer.address(1).habit(query)
    }
    let second = LabServer { query in
      "\(query.question.name)".hasPrefix("dead")
        ? LabServer.code(.refused).habit(query) : LabServer.address(2).habit(query)
    }
    let scene = LabScene(first, second)
    for round in 0..<10 {
      for number in 0..<3 {
        scene.ask("dead\(round)-\(number).example", timeout: .milliseconds(700))
        scene.loop.advance(by: .seconds(1))
      }
      // Others of them, at the same time.
      for number in 0..<100 { scene.begin("dead\(round)-\(number)-0.example") }
      for number in 0..<4 { #expect(scene.ask("n\(round)-\(number).example").place == 0) }
    }
    #expect(scene.client.counters.demotions == 10)
  }

  @Test func `gives no final negative answer to the one that is asked in its place`() {
    let scene = LabScene(.silent, .denying)
    ask(scene, 3, every: .seconds(2))
    let (result, time) = scene.ask(Question(name: DomainName(text: "nas.lan")!, type: .a))
    #expect(time == .milliseconds(110))
    #expect(result.answer?.isOutOfOrder == true)
  }

  @Test func `keeps the network's names if it answers those`() {
    let router = LabServer { query in
      query.question.name == DomainName(text: "nas.lan")! ? LabServer.address(1).habit(query) : []
    }
    let scene = LabScene(router, .denying)
    ask(scene, 3, every: .seconds(2))
    #expect(scene.ask("nas.lan") == (0, .milliseconds(10)))
  }

  @Test func `is asked first again on another network`() {
    let scene = LabScene(.silent, .address(2))
    ask(scene, 4)
    scene.client.networkHasChanged()
    scene.laboratory.forget()
    scene.ask("www.example")
    #expect(!scene.queries(0).isEmpty)
  }

  @Test func `holds few sockets, however many questions there are`() {
    let scene = LabScene(.silent, .address(2))
    ask(scene, 400, every: .milliseconds(311))
    #expect(scene.laboratory.mostOpenSockets <= LocalDNSClient.mostSockets + LocalDNSClient.mostSigns * 2)
    scene.loop.advance(by: .seconds(3))
    #expect(scene.laboratory.openSockets == 0)
  }
}
