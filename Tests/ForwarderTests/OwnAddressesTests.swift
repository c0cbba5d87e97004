// OwnAddressesTests.swift -- plain resolvers that are this program itself are never asked.

import DNSWire
import EventLoop
import LocalDNS
import TestSupport
import Testing

@testable import Configuration
@testable import Forwarder
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

@Suite struct `The program's own addresses` {
  private let lines = LogLines()

  /// The configuration as it is used, with these resolvers in every place that has some.
  private func used(_ resolvers: [String], listeningAt listeners: [String]) throws -> Configuration {
    let endpoints = try resolvers.map { Configuration.ResolverAddress(try #require(Endpoint(text: $0))) }
    var configuration = Configuration()
    configuration.localDNS.servers = [.system] + endpoints.map { .resolver($0) }
    var rule = Configuration.Rule(names: [], use: .localDNS)
    rule.servers = endpoints.map { .resolver($0) }
    configuration.rules = [Configuration.Rule(names: [], use: .refused), rule]
    configuration.providers = [Configuration.Provider(), Configuration.Provider()]
    configuration.providers[1].bootstrap = endpoints
    return configuration.withoutOurselves(try listeners.map { try #require(SocketAddress(text: $0)) }, lines.logger)
  }

  /// The resolvers that are left, which must be the same everywhere.
  private func left(
    _ resolvers: [String], listeningAt listeners: [String], _ location: SourceLocation = #_sourceLocation
  ) throws -> [String] {
    let configuration = try used(resolvers, listeningAt: listeners)
    #expect(configuration.localDNS.servers.first == .system, sourceLocation: location)
    let places = [
      configuration.localDNS.servers.dropFirst().map(text), configuration.rules[1].servers.map(text),
      configuration.providers[1].bootstrap.map(\.description),
    ]
    #expect(Set(places).count == 1, sourceLocation: location)
    return places[0]
  }

  private func text(_ server: Configuration.LocalServer) -> String {
    if case .resolver(let resolver) = server { resolver.description } else { "system" }
  }

  @Test func `own addresses are removed from LocalDNS, rules and bootstrap with one log line each`() throws {
    let resolvers = ["127.0.0.1:53", "192.0.2.1:53", "127.0.0.1:5353", "[::1]:53", "[::ffff:127.0.0.1]:53"]
    #expect(try left(resolvers, listeningAt: ["127.0.0.1:53", "[::1]:53"]) == ["192.0.2.1:53", "127.0.0.1:5353"])
    #expect(lines.all.count == 3 * 3)
    #expect(lines.all.count { $0 == "warning plain resolver 127.0.0.1:53 is one of our own addresses; ignored" } == 3)
  }

  @Test func `with a wildcard listener the addresses of the machine's interfaces are own addresses`() throws {
    let own = LocalAddresses.all().filter { $0.scope == 0 }.compactMap { SocketAddress(octets: $0.octets, port: 53) }
    try #require(!own.isEmpty)
    let others = ["127.0.0.11:53", "192.0.2.1:53", "[2001:db8::1]:53"]
    #expect(
      try left(["127.0.0.1:53"] + own.map(\.description) + others, listeningAt: ["0.0.0.0:53", "[::]:53"]) == others)
    #expect(try left(own.map(\.description), listeningAt: ["0.0.0.0:54", "[::]:54"]).count == own.count)
    // An IPv4 wildcard receives nothing over IPv6.
    #expect(try left(["[::1]:53", "127.0.0.1:53"], listeningAt: ["0.0.0.0:53"]) == ["[::1]:53"])
  }

  @Test func `a configuration without own addresses is unchanged`() throws {
    #expect(try left(["192.0.2.1:53"], listeningAt: ["127.0.0.1:53"]) == ["192.0.2.1:53"])
    #expect(lines.all.isEmpty)
  }
}
