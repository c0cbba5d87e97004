// ResolverPatienceTests.swift -- how long a question waits for a provider: never too short for one that answers, and never
// long for one that is silent.

import Configuration
import DNSWire
import EventLoop
import FairShares
import HTTPClient
import HTTPDNS
import HTTPMessage
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverPatienceTests {
  let loop = SimulatedLoop()

  /// A provider whose server answers each name after some time, unless the name begins with `dead` or it has died.
  private func provider(
    _ label: String = "first", _ address: String = "192.0.2.1", after latency: Duration = .milliseconds(30),
    whileDead death: HTTPResult? = nil, until life: TestFlag = TestFlag()
  ) -> ProviderScene {
    let provider = ProviderScene(on: loop, [ProviderScene.silent], .tested(name: label))
    provider.servers[0].reply = { name in
      if life.isOn { return (death ?? .refused, death == nil ? .seconds(3600) : .milliseconds(1)) }
      return name.hasPrefix("dead") ? nil : (.address(address, of: name), latency)
    }
    provider.servers[0].handshakes = { _ in
      life.isOn && death != nil ? (HTTPFailure(.refused, "refused"), .zero) : (nil, .milliseconds(10))
    }
    return provider
  }

  private func local() -> ScriptedLocalDNS {
    ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "10.0.0.1"), after: .milliseconds(1))
    }
  }

  private func scene(_ providers: [ProviderScene], _ local: ScriptedLocalDNS) -> ResolverScene {
    for number in 0..<20 {
      for provider in providers { provider.begin("www.warm\(number).example") }
      loop.advance(by: .milliseconds(200))
    }
    return ResolverScene(on: loop, providers.map(\.provider), local: local)
  }

  /// Asks for a name of another domain each tenth of a second; gives each question's number and when it was asked.
  private func askOn(_ scene: ResolverScene, _ prefix: String, _ count: Int) -> [Int] {
    (0..<count).map { number in
      defer { loop.advance(by: .milliseconds(100)) }
      return scene.ask("www.\(prefix)\(number).example")
    }
  }

  @Test(arguments: [1, 2])
  func `a silent provider costs a name 150 ms from the third second on`(_ count: Int) throws {
    let isDead = TestFlag()
    let providers = (0..<count).map { provider("p\($0)", until: isDead) }
    let local = local()
    let scene = scene(providers, local)
    isDead.isOn = true
    let numbers = askOn(scene, "site", 100)
    loop.advance(by: .seconds(5))
    let times = try numbers.dropFirst(20).map { number in
      let reply = try scene.reply(number)
      #expect(reply.message.addresses == ["10.0.0.1"])
      return reply.after
    }
    // The last of the providers has its 150 ms as well.
    #expect(times.sorted()[times.count / 2] <= .milliseconds(200) + .milliseconds(150) * (count - 1))
    #expect(times.max()! <= .milliseconds(400) + .milliseconds(150) * (count - 1))
    for number in numbers.prefix(20) { #expect(try scene.reply(number).after <= .milliseconds(1860 + 150 * count)) }
    // A question costs one transfer of each.
    for provider in providers { #expect(provider.servers[0].sent.count <= 20 + 120) }
  }

  @Test func `with several providers LocalDNS's answer is not given before the last one has had 150 ms`() throws {
    let isDead = TestFlag()
    let first = provider("first", until: isDead)
    let second = provider("second", "192.0.2.2", after: .milliseconds(140))
    let local = local()
    let scene = scene([first, second], local)
    isDead.isOn = true
    let numbers = askOn(scene, "site", 60)
    loop.advance(by: .seconds(5))
    for number in numbers {
      let reply = try scene.reply(number)
      #expect(reply.message.addresses == ["192.0.2.2"], "\(number) after \(reply.after)")
    }
    for number in numbers.dropFirst(25) { #expect(try scene.reply(number).after <= .milliseconds(300)) }
    #expect(try numbers.allSatisfy { try scene.reply($0).after <= .milliseconds(2200) })
  }

  @Test(arguments: [30, 140])
  func `a client that keeps patience short leads no name of others to LocalDNS`(milliseconds: Int) throws {
    let provider = provider(after: .milliseconds(milliseconds))
    let local = local()
    let scene = scene([provider], local)
    var others: [Int] = []
    for number in 0..<600 {
      for part in 0..<2 { scene.ask("dead\(part).evil\(number).example", client: 9) }
      loop.advance(by: .milliseconds(25))
      others.append(scene.ask("www.site\(number).example"))
      loop.advance(by: .milliseconds(25))
    }
    loop.advance(by: .seconds(5))
    for number in others { #expect(try scene.reply(number).message.addresses == ["192.0.2.1"]) }
    #expect(local.asked.allSatisfy { $0.question.name.text.hasPrefix("dead") })
    #expect(!local.asked.isEmpty)
  }

  @Test(arguments: [HTTPResult?.none, .refused])
  func `names are the provider's two seconds after it is back`(_ death: HTTPResult?) throws {
    let isDead = TestFlag()
    let provider = provider(whileDead: death, until: isDead)
    let local = local()
    let scene = scene([provider], local)
    isDead.isOn = true
    _ = askOn(scene, "outage", 1400)
    isDead.isOn = false
    let back = loop.now
    let numbers = askOn(scene, "back", 50)
    loop.advance(by: .seconds(5))
    for number in numbers.dropFirst(20) { #expect(try scene.reply(number).message.addresses == ["192.0.2.1"]) }
    #expect(local.asked.allSatisfy { $0.at <= back + .seconds(2) })
  }

  @Test func `no client waits for a provider that refuses connections`() throws {
    let isDead = TestFlag()
    let scene = scene([provider(whileDead: .refused, until: isDead)], local())
    isDead.isOn = true
    for number in askOn(scene, "site", 60) {
      #expect(try scene.reply(number).after <= .milliseconds(10))
      #expect(try scene.reply(number).message.addresses == ["10.0.0.1"])
    }
  }

  @Test func `with one query a minute only the first one waits for a server that is gone`() throws {
    let isDead = TestFlag()
    let provider = provider(until: isDead)
    let local = local()
    let scene = scene([provider], local)
    provider.servers[0].handshakes = { _ in (HTTPFailure(.timeout, "no sign of life"), .seconds(3)) }
    isDead.isOn = true
    for number in 0..<30 {
      let index = scene.ask("www.site\(number).example")
      loop.advance(by: .seconds(60))
      #expect(try scene.reply(index).message.addresses == ["10.0.0.1"])
      if number > 0 { #expect(try scene.reply(index).after <= .milliseconds(11)) }
    }
    #expect(provider.servers[0].sent.count <= 20 + 2)
  }

  @Test func `a name without a verdict goes to the next upstream at once, and costs nothing more`() throws {
    let provider = provider()
    provider.servers[0].reply = { name in
      name.hasPrefix("odd") ? (.status(403), .milliseconds(30)) : (.address("192.0.2.1", of: name), .milliseconds(30))
    }
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(.addresses(question.name, "10.0.0.1", ttl: 0), after: .milliseconds(1))
    }
    let scene = scene([provider], local)
    let sent = provider.servers[0].sent.count
    for number in 0..<3 {
      let index = scene.ask("odd.bank.example")
      loop.advance(by: .milliseconds(100))
      #expect(try scene.reply(index).message.addresses == ["10.0.0.1"])
      #expect(try scene.reply(index).after == .milliseconds(number == 0 ? 31 : 1))
    }
    #expect(provider.servers[0].sent.count == sent + 1)
    // Nothing follows for the other names of the domain.
    #expect(try scene.answer("www.bank.example").addresses == ["192.0.2.1"])
    #expect(local.asked.allSatisfy { $0.question.name.text.hasPrefix("odd") })
  }

  @Test func `patience runs from the connection, unless it is short`() throws {
    let provider = QueueingUpstream(on: loop)
    let local = local()
    let scene = ResolverScene(on: loop, [provider], local: local)
    let first = scene.ask("www.example.com")
    loop.advance(by: .milliseconds(1500))
    provider.connect()
    loop.advance(by: .milliseconds(900))
    #expect(local.asked.isEmpty)
    provider.answer()
    loop.settle()
    #expect(try scene.reply(first).message.addresses == ["192.0.2.1"])

    (provider.pace.isSilent, provider.pace.shortPatience) = (true, .milliseconds(150))
    let second = scene.ask("www.example.org")
    loop.advance(by: .milliseconds(200))
    #expect(try scene.reply(second).message.addresses == ["10.0.0.1"])
    #expect(scene.resolver.assumeIsolated { $0.questionsInFlight } == 0, "it gives up its place")
  }
}

@Suite struct QueuedQuestionTests {
  let loop = SimulatedLoop()

  @Test func `what carries a question knows each client that joins it`() {
    let provider = QueueingUpstream(on: loop)
    let scene = ResolverScene(on: loop, [provider], local: nil)
    scene.ask("www.example.com", client: 9)
    loop.advance(by: .milliseconds(10))
    for client in 6...8 { scene.ask("www.example.com", client: UInt16(client)) }
    loop.settle()
    #expect(Set(provider.clients).count == 3)
  }

  @Test func `LocalDNS's answer to a question that waited for a connection goes to no other client`() throws {
    let provider = QueueingUpstream(on: loop)
    (provider.pace.isSilent, provider.pace.shortPatience) = (true, .milliseconds(150))
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(.addresses(question.name, "10.0.0.1"), after: .milliseconds(1))
    }
    let scene = ResolverScene(on: loop, [provider], local: local)
    let first = scene.ask("www.example.com", client: 9)
    loop.advance(by: .milliseconds(200))
    #expect(try scene.reply(first).message.addresses == ["10.0.0.1"])
    provider.pace.isSilent = false
    let second = scene.ask("www.example.com", client: 7)
    loop.advance(by: .milliseconds(10))
    provider.connect()
    provider.answer()
    loop.settle()
    #expect(try scene.reply(second).message.addresses == ["192.0.2.1"])
  }

  @Test(arguments: [100, 700])
  func `a verdict on one question gives the others their time`(_ milliseconds: Int) throws {
    let provider = QueueingUpstream(on: loop)
    (provider.pace.isSilent, provider.pace.shortPatience) = (true, .milliseconds(150))
    let local = ScriptedLocalDNS(on: loop) { question, _ in
      .answer(.addresses(question.name, "10.0.0.1"), after: .milliseconds(1))
    }
    let scene = ResolverScene(on: loop, [provider], local: local)
    let waiting = scene.ask("www.example.com")
    loop.advance(by: .milliseconds(100))
    // The first answer of a burst, whose other questions wait for a connection.
    provider.pace.isSilent = false
    loop.advance(by: .milliseconds(milliseconds))
    provider.connect()
    loop.advance(by: .milliseconds(900))
    #expect(local.asked.isEmpty)
    provider.answer()
    loop.settle()
    #expect(try scene.reply(waiting).message.addresses == ["192.0.2.1"])
  }
}

/// A provider whose questions wait for a connection.
private final class QueueingUpstream: TestUpstream, QuestionCarrier, @unchecked Sendable {
  let name = "queueing"
  let traits = UpstreamTraits(timeout: .seconds(4))
  var pace = UpstreamPace.prompt
  private(set) var isQueued = false
  /// The clients that have joined.
  private(set) var clients: [ClientKey] = []
  private var isLost = false
  private var asking: [any QuestionInFlight] = []
  private let waiters: Waiters

  init(on loop: any Loop) { waiters = Waiters(on: loop) }

  func connect() {
    isQueued = false
    for question in asking { question.gotConnection() }
    asking = []
  }

  func answer() { waiters.resumeAll() }

  func isJoined(by client: ClientKey) { clients.append(client) }

  func isLate() {
    isLost = isQueued
    if isLost { waiters.resumeAll() }
  }

  func ask(
    _ question: HTTPDNSQuestion, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    self.asking.append(asking)
    (isQueued, isLost) = (true, false)
    asking.isCarried(by: self)
    defer { asking.wasCarried(by: self) }
    await waiters.wait(atMost: .seconds(4)) { !isLost }
    guard !isLost else { return .failure(UpstreamFailure(HTTPFailure(.busy, "the clients have been answered"))) }
    return .success(UpstreamAnswer(answer: .addresses(question.name, "192.0.2.1"), server: "192.0.2.1"))
  }
}
