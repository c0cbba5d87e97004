// ResolverRecoveryTests.swift -- a provider is back: within two seconds every name is answered again.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import TestSupport
import Testing

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
    func abandon(_ failure: HTTPFailure) { script.abandon(failure) }
    var heardAt: BootInstant { script.heardAt }

    nonisolated(nonsending) func handshake(timeout: Duration) async -> HTTPFailure? {
      script.handshakes = { [state, script] _ in
        let isRefused =
          if case .failure(let failure) = script.script(0).result { failure.kind == .refused } else { false }
        return (state.isDown && isRefused ? HTTPFailure(.refused, "refused") : nil, .milliseconds(1))
      }
      return await script.handshake(timeout: timeout)
    }

    nonisolated(nonsending) func send(
      _ request: HTTPRequest, for owner: (any TransferOwner)?, timeout: Duration
    ) async -> HTTPResult {
      guard !state.isDown else { return await script.send(request, for: owner, timeout: timeout) }
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
