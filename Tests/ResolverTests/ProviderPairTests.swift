// ProviderPairTests.swift -- both address families of a name in one transfer: when, when not, and what is cached.

import Ciphers
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

@Suite struct ProviderPairTests {
  private let loop = SimulatedLoop()

  private func provider(
    _ server: TencentServer, _ settings: Configuration.Provider = Configuration.Provider.tested(name: "first")
  ) -> HTTPDNSProvider {
    HTTPDNSProvider(
      settings, dialect: TencentDialect(account: .https(token: Secret("token"), id: nil)),
      servers: [ProviderServer("server", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in server }], loop: loop)
  }

  private func question(
    _ type: RecordType, _ owner: String = "www.example.com", subnet: String? = nil, dnssecOK: Bool = false
  ) -> HTTPDNSQuestion {
    HTTPDNSQuestion(
      name: name(owner), type: type, dnssecOK: dnssecOK, clientSubnet: subnet.flatMap { IPPrefix(text: $0) })
  }

  private func ask(
    _ provider: HTTPDNSProvider, _ questions: HTTPDNSQuestion...
  ) -> [Result<UpstreamAnswer, UpstreamFailure>] {
    loop.run { [loop] in
      let tasks = questions.map { question in
        loop.startTask {
          await provider.ask(question, deadline: loop.now + .milliseconds(4400), isLastResort: true)
        }
      }
      var results: [Result<UpstreamAnswer, UpstreamFailure>] = []
      for task in tasks { results.append(await task.value) }
      return results
    }
  }

  private func addresses(_ results: [Result<UpstreamAnswer, UpstreamFailure>]) -> [[String]?] {
    results.map { result in
      try? result.get().answer.answers.compactMap { IPAddress(octets: $0.rdata)?.description }
    }
  }

  private func failures(_ results: [Result<UpstreamAnswer, UpstreamFailure>]) -> [UpstreamFailure] {
    results.compactMap { result in if case .failure(let failure) = result { failure } else { nil } }
  }

  @Test func `a name that is asked for in one family only never costs the other one`() {
    let server = TencentServer(on: loop)
    let provider = provider(server)
    for _ in 0..<5 { _ = ask(provider, question(.a), question(.aaaa, "v6.example.com")) }
    #expect(server.families == Array(repeating: ["a", "aaaa"], count: 5).flatMap { $0 })
    #expect(provider.counters.values.pairs == 0)
  }

  @Test func `a transfer that all questions have left may end, and is joined by none`() {
    let first = Joining(client: 1)
    let pair = SharedTransfer(for: first, on: loop)
    let carrier = QueuedCarrier()
    pair.isCarried(by: carrier)
    let second = Joining(client: 2)
    pair.join(second)
    #expect(second.carriers == 1 && carrier.clients == [second.client])
    first.hasNoClients = true
    pair.isLate()
    #expect(!pair.hasNoClients && carrier.ends == 0)
    second.hasNoClients = true
    pair.isLate()
    #expect(pair.hasNoClients && carrier.ends == 1)
    pair.wasCarried(by: carrier)
    #expect(first.carriers == 0 && second.carriers == 0)
  }

  @Test func `the next transfer takes a turn of each client that has joined`() {
    let pair = SharedTransfer(for: Joining(client: 1), on: loop)
    // Between two servers nothing carries it.
    let second = Joining(client: 2)
    pair.join(second)
    let carrier = QueuedCarrier()
    pair.isCarried(by: carrier)
    #expect(carrier.clients == [second.client] && second.carriers == 1)
  }

  @Test func `once both families were asked for, the next question fetches both`() throws {
    let server = TencentServer(on: loop)
    let provider = provider(server)
    _ = ask(provider, question(.a), question(.aaaa))
    #expect(server.families == ["a", "aaaa"])
    let answer = try #require(ask(provider, question(.aaaa)).first).get()
    #expect(server.families == ["a", "aaaa", "addrs"])
    #expect(answer.answer.answers.map(\.type) == [.aaaa])
    #expect(answer.others.map(\.question) == [question(.a)])
    #expect(answer.others.flatMap { $0.answer.answers.map(\.type) } == [.a])
    _ = ask(provider, question(.a, "mail.example.com"))
    #expect(server.families.last == "a")
    #expect(provider.counters.values.pairs == 1)
    #expect(provider.counters.values.units == 4)
  }

  @Test func `questions for either family join the pair's transfer, with any flags`() {
    let server = TencentServer(on: loop)
    let provider = provider(server)
    _ = ask(provider, question(.a), question(.aaaa))
    let begin = loop.now
    let results = ask(provider, question(.a), question(.aaaa), question(.a, dnssecOK: true), question(.aaaa))
    #expect(addresses(results) == [["192.0.2.1"], ["2001:db8::1"], ["192.0.2.1"], ["2001:db8::1"]])
    #expect(loop.now - begin == .milliseconds(100))
    #expect(server.families == ["a", "aaaa", "addrs"])
    #expect(provider.pairsInFlight.isEmpty)
    _ = ask(provider, question(.a))
    #expect(server.families == ["a", "aaaa", "addrs", "addrs"])
  }

  @Test func `a joined question waits no longer than its own deadline`() throws {
    let server = TencentServer(on: loop)
    let provider = provider(server)
    _ = ask(provider, question(.a), question(.aaaa))
    server.latency = .milliseconds(1500)
    let begin = loop.now
    let times = loop.run { [loop] in
      let questions = [(question(.a), 4400), (question(.aaaa), 500)]
      let tasks = questions.map { question, time in
        loop.startTask {
          let result = await provider.ask(question, deadline: loop.now + .milliseconds(time), isLastResort: true)
          return (loop.now - begin, (try? result.get()) != nil)
        }
      }
      var times: [(Duration, Bool)] = []
      for task in tasks { times.append(await task.value) }
      return times
    }
    #expect(times.map(\.0) == [.milliseconds(1500), .milliseconds(500)])
    #expect(times.map(\.1) == [true, false])
    #expect(server.families == ["a", "aaaa", "addrs"])
    #expect(provider.pairsInFlight.isEmpty)
  }

  @Test(arguments: [
    HTTPResult.refused, .status(500), .status(403), .text("www.example.com.:192.0.2.1,300"), .text("nonsense;"),
  ])
  func `a failure of the pair reaches both questions, and the next one is sent again`(_ result: HTTPResult) {
    let server = TencentServer(on: loop)
    let provider = provider(server)
    _ = ask(provider, question(.a), question(.aaaa))
    server.result = result
    let results = ask(provider, question(.a), question(.aaaa))
    #expect(failures(results).count == 2)
    // A server that currently cannot is asked once more.
    let sent = result == .status(500) ? 4 : 3
    #expect(server.families.count == sent)
    #expect(provider.pairsInFlight.isEmpty)
    server.result = nil
    loop.advance(by: .seconds(31))
    #expect(addresses(ask(provider, question(.a), question(.aaaa))) == [["192.0.2.1"], ["2001:db8::1"]])
    #expect(server.families.count == sent + 1)
    #expect(provider.pairsInFlight.isEmpty)
  }

  @Test func `a family of the pair that cannot be read does not spoil the other one`() {
    let server = TencentServer(on: loop)
    let provider = provider(server)
    _ = ask(provider, question(.a), question(.aaaa))
    server.result = .text("192.0.2.1,300-192.0.2.2,300")
    let results = ask(provider, question(.a), question(.aaaa))
    #expect(addresses(results) == [["192.0.2.1"], nil])
    #expect(failures(results).map(\.extendedError) == [.invalidData])
    #expect((try? results[0].get().others.count) == 0)
  }

  @Test func `pairs are separate by client subnet`() {
    let server = TencentServer(on: loop)
    let provider = provider(server)
    _ = ask(provider, question(.a), question(.aaaa))
    _ = ask(
      provider, question(.a, subnet: "198.51.100.0/24"), question(.aaaa, subnet: "203.0.113.0/24"),
      question(.aaaa, subnet: "198.51.100.0/24"), question(.a))
    #expect(server.targets.dropFirst(2).map { $0.contains("ip=198.51.100.0") } == [true, false, false])
    #expect(server.targets.dropFirst(2).map { $0.contains("ip=203.0.113.0") } == [false, true, false])
    #expect(provider.pairsInFlight.isEmpty)
  }

  @Test func `an empty sibling counts as not listed, or as NODATA without fallback_on_empty`() throws {
    for fallsBack in [true, false] {
      let server = TencentServer(on: loop)
      let provider = provider(server, Configuration.Provider.tested(name: "first", fallsBackOnEmpty: fallsBack))
      _ = ask(provider, question(.a), question(.aaaa))
      server.result = .text("192.0.2.1,300-0")
      let answer = try ask(provider, question(.a))[0].get()
      #expect(answer.others.map(\.answer.isNegative) == [true])
      #expect(answer.others.map(\.answer.isEmptyAmbiguous) == [fallsBack])
      let count = server.families.count
      let empty = try ask(provider, question(.aaaa))[0].get().answer
      #expect(empty.isNegative && empty.isEmptyAmbiguous == fallsBack)
      #expect(server.families.count == count + (fallsBack ? 0 : 1))
    }
  }

  @Test func `the sibling's answer is cached: a hit without a transfer`() throws {
    let server = TencentServer(on: loop)
    server.ttl = 60
    let scene = ResolverScene(on: loop, [provider(server)])
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    #expect(try scene.answer("www.example.com", .aaaa).addresses == ["2001:db8::1"])
    loop.advance(by: .seconds(61))
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    let (now, sent) = (loop.now, server.families)
    #expect(sent == ["a", "aaaa", "addrs"])
    let answer = try scene.answer("www.example.com", .aaaa)
    #expect(answer.addresses == ["2001:db8::1"])
    #expect(answer.answers.map(\.ttl) == [60])
    #expect(loop.now == now && server.families == sent)
    loop.advance(by: .seconds(61))
    // Both at once: one transfer, one answer each.
    let numbers = [scene.ask("www.example.com", .aaaa), scene.ask("www.example.com", .a)]
    loop.advance(by: .seconds(1))
    #expect(try numbers.map { try scene.reply($0).message.addresses } == [["2001:db8::1"], ["192.0.2.1"]])
    #expect(server.families == sent + ["addrs"])
    #expect(scene.inFlight == 0)
  }

  @Test func `an ambiguous empty sibling is no NODATA in the cache, and the next provider is asked for it`() throws {
    let server = TencentServer(on: loop)
    server.ttl = 60
    let second = ScriptedUpstream("second", on: loop) { _, _ in
      .answer(.addresses(name("www.example.com"), "2001:db8::2"))
    }
    let scene = ResolverScene(on: loop, [provider(server), second])
    for type in [RecordType.a, .aaaa] { _ = try scene.answer("www.example.com", type) }
    loop.advance(by: .seconds(61))
    server.result = .text("192.0.2.1,60-0")
    #expect(try scene.answer("www.example.com").addresses == ["192.0.2.1"])
    let sent = server.families.count
    #expect(try scene.answer("www.example.com", .aaaa).addresses == ["2001:db8::2"])
    #expect(server.families.count == sent)
    #expect(second.asked.map(\.question.type) == [.aaaa])
  }

  @Test func `the sibling is cached for the clients of its subnet`() throws {
    let server = TencentServer(on: loop)
    server.ttl = 60
    let scene = ResolverScene(
      on: loop, [provider(server, Configuration.Provider.tested(name: "first", clientSubnet: .fromClient))])
    func ask(_ type: RecordType, _ subnet: String) throws -> [String] {
      let subnet = try #require(IPPrefix(text: subnet))
      return try scene.answer(ClientQuestion(name: "www.example.com", type: type, subnet: subnet)).addresses
    }
    for type in [RecordType.a, .aaaa] { _ = try ask(type, "198.51.100.0/24") }
    loop.advance(by: .seconds(61))
    _ = try ask(.a, "198.51.100.0/24")
    let sent = server.families.count
    #expect(sent == 3)
    #expect(try ask(.aaaa, "198.51.100.0/24") == ["2001:db8::1"])
    #expect(server.families.count == sent)
    _ = try ask(.aaaa, "203.0.113.0/24")
    #expect(server.families.count == sent + 1)
    #expect(server.targets.last?.contains("ip=203.0.113.0") == true)
  }
}

/// A server that has addresses of both families for every name; each transfer takes 100 ms.
private final class TencentServer: HTTPTransport, @unchecked Sendable {
  /// What it says instead.
  var result: HTTPResult?
  var ttl = 300
  var latency = Duration.milliseconds(100)
  private(set) var targets: [String] = []
  private let loop: any Loop

  init(on loop: any Loop) { self.loop = loop }

  /// The families that each transfer asked for, in the service's words.
  var families: [String] {
    targets.map { $0.contains("type=addrs") ? "addrs" : $0.contains("type=aaaa") ? "aaaa" : "a" }
  }

  func renewConnections() {}

  func abandon(_ failure: HTTPFailure) {}
  func handshake(timeout: Duration) async -> HTTPFailure? { nil }
  let heardAt = BootInstant(nanoseconds: .min)

  nonisolated(nonsending) func send(
    _ request: HTTPRequest, for owner: (any TransferOwner)?, timeout: Duration
  ) async -> HTTPResult {
    targets.append(request.target)
    let (ipv4, ipv6) = ("192.0.2.1,\(ttl)", "2001:db8::1,\(ttl)")
    let family = families.last
    let reply = result ?? .text(family == "addrs" ? "\(ipv4)-\(ipv6)" : family == "a" ? ipv4 : ipv6)
    await loop.sleep(for: latency)
    return reply
  }
}

extension HTTPResult {
  /// A reply in plain text.
  fileprivate static func text(_ text: String) -> HTTPResult {
    .response(HTTPResponse(status: 200, body: Array(text.utf8)))
  }
}

/// A question that counts what carries it.
private final class Joining: QuestionInFlight, @unchecked Sendable {
  let client: ClientKey
  let domain = DomainKey.none
  let startedAt = BootInstant(nanoseconds: 0)
  let isWanted = true
  var hasNoClients = false
  private(set) var carriers = 0

  init(client: UInt64) { self.client = ClientKey(value: client) }

  func isCarried(by carrier: any QuestionCarrier) { carriers += 1 }
  func wasCarried(by carrier: any QuestionCarrier) { carriers -= 1 }
  func gotConnection() {}
}

/// A transfer that waits for its client's turn.
private final class QueuedCarrier: QuestionCarrier {
  let isQueued = true
  private(set) var ends = 0
  private(set) var clients: [ClientKey] = []

  func isJoined(by client: ClientKey) { clients.append(client) }
  func isLate() { ends += 1 }
}
