// StaleScripts.swift -- what tests of stale data have in common: its rules, an answer that has expired, what it looks like.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import TestSupport
import Testing

@testable import Frontend
@testable import Resolver
@testable import Upstreams

extension StalePolicy {
  /// Stale data as the configuration's defaults have it.
  static func tested(_ mode: Configuration.Stale, maxAge: UInt32 = 86_400, isImmutable: Bool = false) -> StalePolicy {
    var policy = StalePolicy()
    policy.mode = mode
    policy.maxAge = maxAge
    policy.isImmutable = isImmutable
    return policy
  }
}

extension ResolverSettings {
  /// Gives every route those rules for stale data.
  mutating func setStale(_ policy: StalePolicy) {
    for index in routes.indices { routes[index].stale = policy }
  }
}

/// A provider and a scene whose routes may give stale data; `www.example.com` is at 192.0.2.1 for 60 s.
final class StaleScene {
  let loop = SimulatedLoop()
  let provider: ScriptedUpstream
  let local: ScriptedLocalDNS
  let scene: ResolverScene
  let www = name("www.example.com")

  init(
    _ policy: StalePolicy = .tested(.onFailure), hasLocal: Bool = false,
    _ configure: (inout ResolverSettings) -> Void = { _ in }
  ) {
    provider = ScriptedUpstream(on: loop) { question, _ in
      .answer(.addresses(question.name, question.type == .aaaa ? "2001:db8::1" : "192.0.2.1", ttl: 60))
    }
    local = ScriptedLocalDNS(on: loop) { question, _ in .answer(.addresses(question.name, "198.51.100.1")) }
    local.isThere = hasLocal
    scene = ResolverScene(on: loop, [provider], local: local) {
      $0.setStale(policy)
      configure(&$0)
    }
  }

  /// Has the answer kept, and then lets that many seconds pass.
  func keep(_ type: RecordType = .a, thenWait seconds: Int = 61) throws {
    _ = try scene.answer("www.example.com", type)
    loop.advance(by: .seconds(seconds))
  }

  /// From now on the provider does that.
  func providerNow(_ step: @escaping (HTTPDNSQuestion) -> ScriptedStep) {
    provider.script = { question, _ in step(question) }
  }

  /// From now on the provider has that address for every name.
  func providerNow(has address: String, ttl: UInt32 = 60, after latency: Duration = .milliseconds(20)) {
    providerNow { .answer(.addresses($0.name, address, ttl: ttl), after: latency) }
  }

  /// Asks for the name, lets ten seconds pass, and gives the one reply.
  func reply(
    _ type: RecordType = .a, _ location: SourceLocation = #_sourceLocation
  ) throws -> (message: Message, after: Duration) {
    let number = scene.ask("www.example.com", type)
    loop.advance(by: .seconds(10))
    return try scene.reply(number, location)
  }
}

/// Expects the addresses and TTLs of a stale answer.
func expectStale(
  _ message: Message, _ addresses: [String] = ["192.0.2.1"], ttl: UInt32 = 30,
  _ location: SourceLocation = #_sourceLocation
) {
  #expect(message.responseCode == .noError, sourceLocation: location)
  #expect(message.addresses == addresses, sourceLocation: location)
  #expect(message.answers.allSatisfy { $0.ttl == ttl }, sourceLocation: location)
  #expect(message.extendedError == .staleAnswer, sourceLocation: location)
}

func expectFresh(_ message: Message, _ addresses: [String], _ location: SourceLocation = #_sourceLocation) {
  #expect(message.responseCode == .noError, sourceLocation: location)
  #expect(message.addresses == addresses, sourceLocation: location)
  #expect(message.extendedError == nil, sourceLocation: location)
}
