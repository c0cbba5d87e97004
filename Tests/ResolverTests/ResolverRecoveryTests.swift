// ResolverRecoveryTests.swift -- a provider is back: within two seconds every name is answered again.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import TestSupport
import Testing

@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct ResolverRecoveryTests {
  private let loop = SimulatedLoop()

  private final class Switch: @unchecked Sendable { var isDown = false }

  /// A provider that answers every name, unless it is down.
  private func provider(_ outage: Outage, _ state: Switch, servers: Int) -> (HTTPDNSProvider, [ScriptedTransport]) {
    let transports = (0..<servers).map { _ in ScriptedTransport(on: loop) { _ in outage.step } }
    let provider = HTTPDNSProvider(
      Configuration.Provider.tested(name: "first"), dialect: JSONDialect(flavour: .generic, path: "/resolve"),
      servers: transports.enumerated().map { number, transport in
        let echo = Echo(transport, state)
        return ProviderServer("server\(number)", addresses: [IPAddress(text: "192.0.2.1")!]) { _ in echo }
      }, loop: loop)
    return (provider, transports)
  }

  /// Answers what it is asked, or has the script answer.
  private final class Echo: HTTPTransport, @unchecked Sendable {
    private let script: ScriptedTransport
    private let state: Switch

    init(_ script: ScriptedTransport, _ state: Switch) {
      self.script = script
      self.state = state
    }

    func renewConnections() {}

    nonisolated(nonsending) func send(_ request: HTTPRequest, timeout: Duration) async -> HTTPResult {
      guard !state.isDown else { return await script.send(request, timeout: timeout) }
      let name = request.target.split(separator: "=")[1].split(separator: "&")[0]
      return .json(#"{"Status":0,"Answer":[{"name":"\#(name).","type":1,"TTL":5,"data":"192.0.2.7"}]}"#)
    }
  }

  @Test(arguments: Outage.allCases, [1, 2])
  func `after an outage of any length all names are answered within two seconds`(
    _ outage: Outage, servers: Int
  ) throws {
    for seconds in [10, 60, 140, 600] {
      let state = Switch()
      let (provider, _) = provider(outage, state, servers: servers)
      let scene = ResolverScene(on: loop, [provider])
      func askAll() {
        for number in 0..<20 {
          scene.ask("n\(number).d\(number).example")
          loop.advance(by: .milliseconds(50))
        }
      }
      askAll()
      state.isDown = true
      for _ in 0..<seconds { askAll() }
      state.isDown = false
      let back = loop.now
      for _ in 0..<6 { askAll() }
      loop.advance(by: .seconds(5))
      for transaction in scene.transactions where transaction.askedAt >= back + .seconds(2) {
        #expect(
          transaction.replies.first?.message.responseCode == .noError, "\(transaction.question.name) after \(seconds) s"
        )
      }
    }
  }

  @Test func `a wait that was the answer's own fault stays, and a return counts once in ten seconds`() throws {
    let first = ScriptedUpstream(on: loop) { question, number in
      question.name == name("odd.example")
        ? .failure(.invalidData, .answer) : number < 2 ? .failure() : .answer(.addresses(question.name, "192.0.2.1"))
    }
    let scene = ResolverScene(on: loop, [first])
    for text in ["odd.example", "a.example"] { #expect(try scene.answer(text).responseCode == .servFail) }
    first.tellBack()
    #expect(try scene.answer("odd.example").extendedError == .cachedError)
    #expect(try scene.answer("a.example").responseCode == .noError)
    // The next return counts when ten seconds are over.
    first.script = { _, _ in .failure() }
    for wait in [0, 1, 3] {
      loop.advance(by: .seconds(wait))
      #expect(try scene.answer("b.example").responseCode == .servFail)
    }
    let asked = first.asked.count
    first.tellBack()
    #expect(try scene.answer("b.example").extendedError == .cachedError)
    #expect(first.asked.count == asked)
    loop.advance(by: .seconds(5))
    first.script = { question, _ in .answer(.addresses(question.name, "192.0.2.1")) }
    loop.advance(by: .seconds(1))
    #expect(try scene.answer("b.example").responseCode == .noError)
  }

  @Test func `a question that was lost before a provider's return does not wait after it`() throws {
    let first = ScriptedUpstream(on: loop) { question, number in
      number < 2 ? .failure(after: .seconds(2)) : .answer(.addresses(question.name, "192.0.2.1"))
    }
    let scene = ResolverScene(on: loop, [first])
    scene.ask("a.example")
    loop.advance(by: .seconds(1))
    scene.ask("b.example")
    first.tellBack()
    loop.advance(by: .milliseconds(1500))
    #expect(scene.transactions[0].replies.first?.message.responseCode == .servFail)
    #expect(try scene.answer("a.example").responseCode == .noError)
    // One that began with the return or after it has failed by itself.
    loop.advance(by: .seconds(1))
    #expect(scene.transactions[1].replies.first?.message.responseCode == .servFail)
  }

  @Test func `names in use are refetched after an outage within the budget`() throws {
    let state = Switch()
    let (provider, _) = provider(.refused, state, servers: 1)
    let scene = ResolverScene(on: loop, [provider]) { settings in
      for index in settings.routes.indices {
        settings.routes[index].stale.mode = .onFailure
        settings.routes[index].stale.maxAge = 86_400
      }
    }
    _ = try scene.answer("www.example.com")
    state.isDown = true
    loop.advance(by: .seconds(6))
    #expect(try scene.answer("www.example.com").extendedError == .staleAnswer)
    state.isDown = false
    loop.advance(by: .seconds(2))
    // Stale data is given for half a minute without asking; another name shows that the provider is back.
    _ = try scene.answer("www.other.example")
    loop.advance(by: .seconds(1))
    #expect(try scene.answer("www.example.com").extendedError == nil)
  }
}
