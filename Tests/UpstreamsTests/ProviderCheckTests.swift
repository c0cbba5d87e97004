// ProviderCheckTests.swift -- one client's odd questions do not put the provider down; a real outage is still detected.

import Ciphers
import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import LocalDNS
import Logging
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// What a service says to a name.
private enum Saying {
  case address
  case result(HTTPResult)
  case silence
}

@Suite struct ProviderCheckTests {
  private let loop = SimulatedLoop()
  private let notes = Notes()

  /// A service of one server or more that does to each name what a test says.
  private final class Service: @unchecked Sendable {
    var odd: [String: Saying] = [:]
    var everything: Saying?
    var transports: [ByName] = []
    var count: Int { transports.reduce(0) { $0 + $1.asked.count } }

    func saying(_ name: String) -> Saying { everything ?? odd.first { name.hasSuffix($0.key) }?.value ?? .address }
  }

  private final class ByName: HTTPTransport, @unchecked Sendable {
    let loop: any Loop
    let service: Service
    var asked: [String] = []
    /// What this server does with any name.
    var own: Saying?

    init(_ service: Service, on loop: any Loop) {
      self.service = service
      self.loop = loop
    }

    func renewConnections() {}

    nonisolated(nonsending) func send(_ request: HTTPRequest, timeout: Duration) async -> HTTPResult {
      let name = String(request.target.split(separator: "=")[1].split(separator: "&")[0])
      asked.append(name)
      switch own ?? service.saying(name) {
      case .silence:
        await loop.sleep(for: timeout)
        return .failure(HTTPFailure(.timeout, "the time was up", wasSent: true))
      case .result(let result):
        await loop.sleep(for: .milliseconds(20))
        return result
      case .address:
        await loop.sleep(for: .milliseconds(20))
        return .json(
          #"{"Status":0,"Answer":[{"name":"\#(name).","type":1,"TTL":300,"data":"192.0.2.7"}]}"#)
      }
    }
  }

  private func make(
    servers: Int = 1, _ settings: Configuration.Provider = Configuration.Provider.tested(name: "first")
  ) -> (HTTPDNSProvider, Service) {
    let service = Service()
    service.transports = (0..<servers).map { _ in ByName(service, on: loop) }
    let provider = HTTPDNSProvider(
      settings, dialect: JSONDialect(flavour: .generic, path: "/resolve"),
      servers: service.transports.enumerated().map { number, transport in
        ProviderServer("server\(number)", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in transport }
      }, loop: loop
    ) { [notes] level, line in if level != .debug { notes.add(line) } }
    return (provider, service)
  }

  @discardableResult
  private func ask(_ provider: HTTPDNSProvider, _ text: String) -> Result<UpstreamAnswer, UpstreamFailure> {
    loop.run { [loop] in
      await provider.ask(
        HTTPDNSQuestion(name: name(text), type: .a), deadline: loop.now + .milliseconds(4400), isLastResort: false)
    }
  }

  private func failure(_ result: Result<UpstreamAnswer, UpstreamFailure>) -> UpstreamFailure? {
    if case .failure(let failure) = result { failure } else { nil }
  }

  private func isUp(_ provider: HTTPDNSProvider) -> Bool {
    provider.health.fitness(now: loop.now.nanoseconds) == .up
  }

  /// Replies that the owner of a zone, or a client with odd names, can cause.
  private static let oddities: [HTTPResult] = [
    .status(400), .status(401), .status(403), .status(404), .status(413), .status(415), .status(429), .status(500),
    .status(502), .status(503), .json("{"), .json(""),
    .json(#"{"Status":0,"Question":[{"name":"other.example","type":1}]}"#),
    .response(HTTPResponse(status: 200, contentType: "text/html", body: Array("<html>".utf8))),
    .failure(HTTPFailure(.tooLarge, "more than 65536 octets of content", wasSent: true)),
    .failure(HTTPFailure(.reset, "reset", wasSent: true)),
  ]

  @Test(arguments: [false, true], [1, 2])
  func `a slow zone does not put the provider down, queried often or rarely`(isOften: Bool, servers: Int) {
    let (provider, service) = make(servers: servers)
    service.odd["lame.example"] = .silence
    ask(provider, "www.good.example")
    for number in 0..<40 {
      let failure = failure(ask(provider, "n\(number).lame.example"))
      #expect(failure?.leadsToLocalDNS == true, "nothing was said about the name")
      if !isOften { loop.advance(by: .seconds(7)) }
      #expect(isUp(provider))
      #expect(failure != nil && self.failure(ask(provider, "h\(number).good.example")) == nil)
    }
    #expect(notes.all.isEmpty)
  }

  @Test(arguments: ProviderCheckTests.oddities)
  func `failures of one name put the provider neither down nor aside`(_ oddity: HTTPResult) {
    let (provider, service) = make()
    service.odd["odd.example"] = .result(oddity)
    ask(provider, "www.good.example")
    for number in 0..<40 {
      loop.advance(by: .seconds(12))
      let failure = failure(ask(provider, "n\(number).odd.example"))
      #expect(failure?.blame == .question || failure?.blame == .answer, "\(String(describing: failure))")
      #expect(failure?.isFinal == true)
      // Too soon for another check: nothing is known, and nothing follows.
      loop.advance(by: .seconds(2))
      ask(provider, "m\(number).odd.example")
      #expect(isUp(provider))
    }
    #expect(notes.all.isEmpty)
  }

  @Test func `before any good name, one refused name without an account does not put the provider aside`() {
    let (provider, service) = make()
    service.odd["odd.example"] = .result(.status(403))
    for number in 0..<20 { #expect(failure(ask(provider, "n\(number).odd.example"))?.blame == .question) }
    #expect(failure(ask(provider, "www.good.example")) == nil)
    // It does not count against the provider, but a person who looks for its cause sees it.
    let shown = provider.report.lastFailure
    #expect(shown?.hasPrefix("server0: the provider refused the request (HTTP status 403)") == true, "\(shown ?? "")")
    #expect(shown?.contains(" (does not count against the provider yet); ") == true, "\(shown ?? "")")
  }

  @Test func `before any good name, three refused domains put the provider aside`() {
    let (provider, service) = make()
    service.everything = .result(.status(403))
    for number in 0..<5 { ask(provider, "www.d\(number).example.org") }
    #expect(service.count == 5, "one domain")
    for number in 0..<5 { ask(provider, "www.domain\(number).example") }
    #expect(service.count == 7)
    #expect(notes.all.count == 1 && notes.all[0].contains("backing off for 30 s"))
  }

  @Test(arguments: [HTTPResult.status(401), .status(403), .status(429), .status(400), .status(404)])
  func `a refusal of a good name puts the provider aside, with a log line`(_ refusal: HTTPResult) {
    let (provider, service) = make()
    ask(provider, "www.good.example")
    service.everything = .result(refusal)
    #expect(failure(ask(provider, "www.other.example"))?.blame == .account)
    #expect(service.transports[0].asked == ["www.good.example", "www.other.example", "www.good.example"])
    #expect(!isUp(provider))
    #expect(notes.all.count == 1)
  }

  @Test(arguments: [1, 2, 3])
  func `a service that has fallen silent is down within seconds`(servers: Int) {
    let (provider, service) = make(servers: servers)
    for number in 0..<4 { ask(provider, "www.good\(number).example") }
    loop.advance(by: .seconds(60))
    service.everything = .silence
    let began = loop.now
    var number = 0
    while isUp(provider), number < 50 {
      number += 1
      Task(executorPreference: loop) { [loop, number] in
        _ = await provider.ask(
          HTTPDNSQuestion(name: name("h\(number).good0.example"), type: .a), deadline: loop.now + .milliseconds(4400),
          isLastResort: false)
      }
      loop.advance(by: .milliseconds(500))
    }
    #expect(!isUp(provider) && loop.now - began <= .seconds(12), "\(loop.now - began)")
    service.everything = nil
    loop.advance(by: .seconds(130))
    #expect(isUp(provider))
  }

  @Test func `connections that are refused count at once`() {
    let (provider, service) = make()
    ask(provider, "www.good.example")
    service.everything = .result(.refused)
    for _ in 0..<3 { ask(provider, "www.good.example") }
    #expect(!isUp(provider))
  }

  @Test func `there is one check at a time, one in five seconds at most, and each is charged`() {
    let (provider, service) = make()
    service.odd["odd.example"] = .result(.status(500))
    ask(provider, "www.good.example")
    let began = loop.now
    let before = provider.counters.transfers
    loop.run { [loop] in
      let tasks = (0..<50).map { number in
        Task(executorPreference: loop) {
          await loop.sleep(for: .milliseconds(1100 + 400 * number))
          _ = await provider.ask(
            HTTPDNSQuestion(name: name("n\(number).odd.example"), type: .a), deadline: loop.now + .seconds(4),
            isLastResort: false)
        }
      }
      for task in tasks { await task.value }
    }
    let seconds = (loop.now - began).components.seconds
    #expect(provider.counters.checks >= 3 && provider.counters.checks <= seconds / 5 + 1)
    // Each failing question is sent twice.
    #expect(provider.counters.transfers - before == 100 + provider.counters.checks)
    #expect(isUp(provider))
  }

  @Test func `a check that takes longer than that is still the only one`() {
    var settings = Configuration.Provider.tested(name: "first")
    settings.timeout = .seconds(10)
    let (provider, service) = make(servers: 2, settings)
    for number in 0..<3 { ask(provider, "www.good\(number).example") }
    loop.advance(by: .seconds(5))
    service.everything = .silence
    for number in 0..<60 {
      Task(executorPreference: loop) { [loop] in
        _ = await provider.ask(
          HTTPDNSQuestion(name: name("n\(number).odd.example"), type: .a), deadline: loop.now + .seconds(4),
          isLastResort: false)
      }
      loop.advance(by: .milliseconds(250))
    }
    // Two questions of each server in each check, whose time is ten seconds.
    #expect(provider.counters.checks <= 4, "\(provider.counters.checks)")
  }

  @Test func `a failure too soon for another check is judged by the last one`() {
    let (provider, service) = make()
    service.odd = ["odd.example": .result(.status(500)), "late.example": .silence]
    ask(provider, "www.good.example")
    loop.advance(by: .seconds(6))
    #expect(failure(ask(provider, "a.odd.example"))?.blame == .answer)
    loop.advance(by: .seconds(2))
    #expect(failure(ask(provider, "b.odd.example"))?.blame == .answer)
    let late = failure(ask(provider, "c.late.example"))
    #expect(late?.blame == .question && late?.isLate == true)
  }

  @Test func `a failure before a server's recovery stays its fault after a good check`() {
    let (provider, service) = make()
    for text in ["www.good.example", "www.fine.example"] { ask(provider, text) }
    loop.advance(by: .seconds(30))
    service.everything = .silence
    let lost = (0..<2).map { number in
      let task = Task(executorPreference: loop) { [loop] in
        await provider.ask(
          HTTPDNSQuestion(name: name("www.other\(number).example"), type: .a), deadline: loop.now + .seconds(4),
          isLastResort: false)
      }
      loop.advance(by: .milliseconds(600))
      return task
    }
    loop.advance(by: .milliseconds(900))
    // The first one has been lost, and the first question of the check is.
    service.everything = nil
    let failures = lost.map { task in failure(loop.run { await task.value }) }
    #expect(provider.counters.checks > 0)
    #expect(failures.map { $0?.blame } == [.server, .server])
  }

  @Test func `a failure before a server's recovery is not the question's fault`() {
    let (provider, service) = make()
    for text in ["www.good.example", "www.fine.example"] { ask(provider, text) }
    loop.advance(by: .seconds(30))
    service.everything = .silence
    let lost = Task(executorPreference: loop) { [loop] in
      await provider.ask(
        HTTPDNSQuestion(name: name("www.other.example"), type: .a), deadline: loop.now + .seconds(4),
        isLastResort: false)
    }
    loop.advance(by: .milliseconds(1500))
    service.everything = nil
    ask(provider, "www.good.example")
    let failure = failure(loop.run { await lost.value })
    #expect(failure?.blame == .server)
  }

  @Test func `a server that dies a moment after a check is replaced by the next one`() {
    let (provider, service) = make(servers: 2)
    for text in ["www.good.example", "www.fine.example"] { ask(provider, text) }
    loop.advance(by: .seconds(10))
    service.odd["late.example"] = .silence
    ask(provider, "a.late.example")
    loop.advance(by: .seconds(1))
    service.transports[0].own = .silence
    for number in 0..<3 { #expect(failure(ask(provider, "n\(number).good.example")) == nil) }
  }

  @Test func `before another domain was good, a refusal of one name is not the account's`() {
    let settings = Configuration.Provider.tested(name: "first", hasAccount: true)
    let (provider, service) = make(settings)
    ask(provider, "www.evil.example")
    loop.advance(by: .seconds(2))
    service.odd["evil.example"] = .result(.status(403))
    for number in 0..<3 { ask(provider, "n\(number).evil.example") }
    #expect(isUp(provider))
    #expect(failure(ask(provider, "www.good.example")) == nil)
  }

  @Test func `an account that is refused for the only domain in use is found out`() {
    let settings = Configuration.Provider.tested(name: "first", hasAccount: true)
    let (provider, service) = make(settings)
    ask(provider, "www.good.example")
    loop.advance(by: .seconds(2))
    service.everything = .result(.status(403))
    for number in 0..<20 { ask(provider, "n\(number).good.example") }
    #expect(!isUp(provider) && service.count == 1 + 8)
    loop.advance(by: .seconds(31))
    ask(provider, "www.good.example")
    #expect(!isUp(provider) && service.count == 1 + 8 + 1, "the next refusal counts at once")
    service.everything = nil
    loop.advance(by: .seconds(61))
    #expect(failure(ask(provider, "www.good.example")) == nil)
    service.everything = .result(.status(403))
    for number in 0..<7 { ask(provider, "m\(number).good.example") }
    #expect(isUp(provider), "an answer begins the count again")
  }

  @Test func `a provider inherits the good questions of its predecessor`() {
    let (provider, _) = make()
    ask(provider, "www.good.example")
    let (heir, service) = make()
    provider.retire(for: heir)
    service.odd["odd.example"] = .result(.status(403))
    ask(heir, "www.odd.example")
    #expect(service.transports[0].asked.last == "www.good.example")
  }

  @Test func `check_name is asked first, then the keep list, and never the failed name`() {
    var settings = Configuration.Provider.tested(name: "first")
    settings.checkName = name("check.example.net")
    let (provider, service) = make(settings)
    service.odd["odd.example"] = .result(.status(403))
    ask(provider, "www.odd.example")
    #expect(service.transports[0].asked.last == "check.example.net")
    let (other, others) = make()
    other.follow(keepListNames: [name("kept.example.net")])
    others.odd["odd.example"] = .result(.status(403))
    for text in ["kept.example.net", "www.good.example", "www.odd.example"] { ask(other, text) }
    #expect(others.transports[0].asked.last == "kept.example.net")
    others.odd["kept.example.net"] = .result(.status(403))
    loop.advance(by: .seconds(6))
    #expect(failure(ask(other, "kept.example.net"))?.blame == .question)
    #expect(others.transports[0].asked.last == "www.good.example")
  }

  @Test func `good names are of different domains, and not all of one client`() {
    var good = GoodQuestions()
    var now = BootInstant(nanoseconds: 0)
    for number in 0..<8 {
      good.note(HTTPDNSQuestion(name: name("www.d\(number).example"), type: .a), now: now)
      now = now + .seconds(1)
    }
    for number in 0..<1000 { good.note(HTTPDNSQuestion(name: name("n\(number).evil.example"), type: .a), now: now) }
    let check = good.questions(insteadOf: HTTPDNSQuestion(name: name("bad.evil.example"), type: .a))
    #expect(check.map(\.name) == [name("www.d1.example"), name("www.d2.example")])
    let other = good.questions(insteadOf: HTTPDNSQuestion(name: name("bad.d1.example"), type: .a))
    #expect(other.map(\.name) == [name("www.d2.example"), name("www.d3.example")])
  }

  @Test func `a zone that dies does not put the provider down`() {
    let (provider, service) = make()
    for text in ["www.good.example", "www.trap.example"] {
      ask(provider, text)
      loop.advance(by: .seconds(2))
    }
    for dead in ["trap.example", "good.example"] {
      service.odd = [dead: .silence, "lame.example": .silence]
      for number in 0..<10 {
        ask(provider, "n\(number).lame.example")
        loop.advance(by: .seconds(6))
        #expect(isUp(provider), "\(dead)")
      }
    }
  }

  @Test func `a dead check name does not keep the provider down`() {
    var settings = Configuration.Provider.tested(name: "first")
    settings.checkName = name("check.dead.example")
    let (provider, service) = make(settings)
    ask(provider, "www.good.example")
    service.everything = .result(.refused)
    for _ in 0..<3 { ask(provider, "www.good.example") }
    #expect(!isUp(provider))
    service.everything = nil
    service.odd["dead.example"] = .silence
    loop.advance(by: .seconds(30))
    #expect(isUp(provider))
  }

  @Test(arguments: [HTTPResult.status(503), .failure(HTTPFailure(.reset, "reset", wasSent: true))])
  func `a question that one server cannot answer goes to the next one, also after a good reply`(
    _ result: HTTPResult
  ) throws {
    let (provider, service) = make(servers: 2)
    for number in 0..<5 {
      service.transports[0].own = nil
      ask(provider, "g\(number).good.example")
      service.transports[0].own = .result(result)
      #expect(try ask(provider, "n\(number).other.example").get().server == "server1")
    }
    #expect(isUp(provider))
  }

  @Test func `a server error is retried once, at another server if there is one`() {
    let (provider, service) = make()
    ask(provider, "www.good.example")
    service.everything = .result(.status(500))
    ask(provider, "www.other.example")
    #expect(service.transports[0].asked.filter { $0 == "www.other.example" }.count == 2)
    let (two, both) = make(servers: 2)
    both.everything = .result(.status(503))
    ask(two, "www.other.example")
    #expect(both.transports.map(\.asked.count) == [1, 1])
  }

  @Test func `every transfer is charged before its reply is understood`() {
    let service = Service()
    let transport = ByName(service, on: loop)
    let provider = HTTPDNSProvider(
      Configuration.Provider.tested(name: "first", unitsPerDay: 20),
      dialect: AliDNSDialect(credential: nil, isEncrypted: false),
      servers: [ProviderServer("server", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in transport }], loop: loop)
    let price = AliDNSDialect(credential: nil, isEncrypted: false).billing.unitsPerTransfer
    #expect(price > 0)
    for saying in [
      Saying.result(.json("no JSON")), .result(.status(500)), .result(.status(404)), .silence,
      .result(.failure(HTTPFailure(.reset, "reset", wasSent: true))),
    ] {
      service.everything = saying
      ask(provider, "www.example.com")
      #expect(provider.budget.spent == provider.counters.transfers * price)
    }
    service.everything = .result(.refused)
    let before = provider.budget.spent
    ask(provider, "www.example.com")
    #expect(provider.budget.spent == before, "nothing was sent")
    service.everything = .result(.json("{"))
    for _ in 0..<40 { ask(provider, "www.example.com") }
    #expect(provider.budget.spent <= 20 + price)
  }

  @Test func `a service that bills by answers is charged for what may be one`() {
    let emas = EMASDialect(accountID: "100000", secretKey: Secret("key"), isEncrypted: false)
    let transport = ScriptedTransport(on: loop) { _ in (.json("no JSON"), .milliseconds(10)) }
    let provider = HTTPDNSProvider(
      Configuration.Provider.tested(name: "first", unitsPerDay: 1000), dialect: emas,
      servers: [ProviderServer("server", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in transport }], loop: loop)
    #expect(emas.billing.unitsPerTransfer == 0 && emas.billing.unitsPerAnswer > 0)
    ask(provider, "www.example.com")
    #expect(provider.budget.spent == provider.counters.transfers * emas.billing.unitsPerAnswer)
  }

  @Test func `forty questions at once under a budget of five units cost no more than that and one transfer`() {
    let price = AliDNSDialect(credential: nil, isEncrypted: true).billing.unitsPerTransfer
    let transport = ScriptedTransport(on: loop) { _ in (.json("no JSON"), .milliseconds(10)) }
    let provider = HTTPDNSProvider(
      Configuration.Provider.tested(name: "first", unitsPerDay: 5),
      dialect: AliDNSDialect(credential: nil, isEncrypted: true),
      servers: [ProviderServer("server", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in transport }], loop: loop)
    loop.run { [loop] in
      let tasks = (0..<40).map { number in
        Task(executorPreference: loop) {
          _ = await provider.ask(
            HTTPDNSQuestion(name: name("n\(number).example"), type: .a), deadline: loop.now + .seconds(4),
            isLastResort: false)
        }
      }
      for task in tasks { await task.value }
    }
    #expect(provider.budget.spent == provider.counters.transfers * price)
    #expect(provider.budget.spent <= 5 + price)
  }
}
