// ProviderScene.swift -- a provider with scripted servers on a virtual clock.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import HTTPMessage
import LocalDNS
import TestSupport

@testable import Upstreams

/// A provider whose servers do what a test says.
final class ProviderScene: @unchecked Sendable {
  typealias Script = (Int) -> (result: HTTPResult, latency: Duration)

  let loop: SimulatedLoop
  let servers: [ScriptedTransport]
  let provider: HTTPDNSProvider
  /// Lines of the log, and those of level debug.
  let notes = Notes()
  let details = Notes()
  /// How often the provider said that it is back.
  private(set) var recoveries = 0

  /// - Parameter lookUp: how long it takes to resolve the servers' names; nil if they are given by address.
  init(
    on loop: SimulatedLoop = SimulatedLoop(), _ servers: [Script],
    _ settings: Configuration.Provider = .tested(name: "first", hasAccount: true),
    dialect: any Dialect = JSONDialect(flavour: .generic, path: "/resolve"), isVerified: Bool = true,
    lookUp: Duration? = nil, certificateClock: CertificateClock? = nil, ledger: UnitLedger? = nil
  ) {
    self.loop = loop
    let transports = servers.map { ScriptedTransport(on: loop, $0) }
    self.servers = transports
    provider = HTTPDNSProvider(
      settings, dialect: dialect,
      servers: transports.enumerated().map { number, transport in
        guard let lookUp else {
          return ProviderServer(
            "server\(number)", addresses: [IPAddress(text: "192.0.2.1")!], isVerified: isVerified
          ) { _ in transport }
        }
        let plain = ScriptedPlainDNS(on: loop) { _, _ in (["192.0.2.1"], 300, lookUp) }
        let names = HostLookUp(DomainName(text: "dns.example")!, types: [.a], client: plain, loop: loop) {
          [PlainResolver(SocketAddress(text: "192.0.2.53:53")!)]
        }
        return ProviderServer("server\(number)", lookUp: names, isVerified: isVerified) { _ in transport }
      }, loop: loop, ledger: ledger, certificateClock: certificateClock
    ) { [notes, details] level, line in (level == .debug ? details : notes).add(line) }
    provider.health.onRecovery = { [weak self] in self?.recoveries += 1 }
  }

  /// A server that always does the same.
  static func always(_ result: HTTPResult, after latency: Duration = .milliseconds(10)) -> Script {
    { _ in (result, latency) }
  }

  /// A server that takes every connection and says nothing.
  static var silent: Script { always(.refused, after: .seconds(3600)) }

  /// Asks for the address of a name.
  @discardableResult
  func ask(
    _ name: String = "www.example.com", within time: Duration = .milliseconds(4400), isLastResort: Bool = false
  ) -> Result<UpstreamAnswer, UpstreamFailure> {
    loop.run { [self] in await asked(name, within: time, isLastResort: isLastResort) }
  }

  /// The same from a task on the loop.
  func asked(
    _ name: String = "www.example.com", within time: Duration = .milliseconds(4400), isLastResort: Bool = false
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    let question = HTTPDNSQuestion(name: DomainName(text: name)!, type: .a)
    return await provider.ask(
      question, for: OwnQuestion(question.name, now: loop.now), deadline: loop.now + time, isLastResort: isLastResort)
  }

  /// Whether background work may ask for the address of a name.
  var isFit: Bool { provider.isFit(for: HTTPDNSQuestion(name: DomainName(text: "www.example.com")!, type: .a)) }

  /// Asks for several names at once.
  func askAtOnce(_ names: [String]) -> [Result<UpstreamAnswer, UpstreamFailure>] {
    loop.run { [self] in
      let tasks = names.map { name in loop.startTask { await self.asked(name) } }
      var results: [Result<UpstreamAnswer, UpstreamFailure>] = []
      for task in tasks { results.append(await task.value) }
      return results
    }
  }

  /// Begins to ask, and does not wait for the end.
  func begin(_ name: String) { loop.startTask { [self] in _ = await asked(name) } }
}

extension Result where Success == UpstreamAnswer, Failure == UpstreamFailure {
  var isAnswer: Bool { if case .success = self { true } else { false } }

  var failure: UpstreamFailure? { if case .failure(let failure) = self { failure } else { nil } }

  var server: String? { if case .success(let answer) = self { answer.server } else { nil } }
}

/// Something that a script looks at and a test changes.
final class TestFlag: @unchecked Sendable {
  var isOn = false
}

extension HTTPDNSProvider {
  /// Asks for a caller inside the daemon.
  func ask(
    _ question: HTTPDNSQuestion, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    await ask(
      question, for: OwnQuestion(question.name, now: loop.now), deadline: deadline, isLastResort: isLastResort)
  }
}

extension TableProvider {
  /// Asks for a caller inside the daemon.
  func ask(
    _ question: HTTPDNSQuestion, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    await ask(
      question, for: OwnQuestion(question.name, now: loop.now), deadline: deadline, isLastResort: isLastResort)
  }
}
