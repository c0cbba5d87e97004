// LocalDNSUpstream.swift -- the network's plain resolvers as an upstream. Resolver's loop only.

import DNSWire
import EventLoop
import Glibc
import HTTPDNS
import LocalDNS

/// LocalDNS: selects the servers and converts their responses into answers.
package final class LocalDNSUpstream: LocalUpstream, @unchecked Sendable {
  private let client: any LocalDNSTransport
  private let loop: any Loop
  /// The resolvers that the network announces, without our own addresses.
  package var systemServers: [SocketAddress]
  private var configured: LocalServers
  private var others: [LocalServers]
  private let loopGuard: LoopGuard?

  /// - Parameters:
  ///   - loop: the resolver's loop.
  ///   - configured: the resolvers that the configuration lists for LocalDNS.
  ///   - others: the resolvers of routing rules.
  ///   - loopGuard: excludes servers that forward queries back to us.
  package init(
    _ client: any LocalDNSTransport, on loop: any Loop, systemServers: [SocketAddress], configured: LocalServers,
    others: [LocalServers] = [], loopGuard: LoopGuard? = nil
  ) {
    self.client = client
    self.loop = loop
    self.systemServers = systemServers
    self.configured = configured
    self.others = others
    self.loopGuard = loopGuard
  }

  /// Forgets which servers were silent after a change of network.
  package func networkHasChanged() {
    loop.assertCurrent()
    client.networkHasChanged()
  }

  /// Switches to another configuration after a reload.
  package func use(configured: LocalServers, others: [LocalServers]) {
    loop.assertCurrent()
    self.configured = configured
    self.others = others
  }

  /// Whether any list includes the resolvers of the network.
  package var usesSystemServers: Bool { ([configured] + others).contains { $0.entries.contains(.system) } }

  /// Every server that may be asked, including those that forward queries back to us.
  package var allServers: [SocketAddress] {
    var servers: [SocketAddress] = []
    for list in [configured] + others { servers += known(list).filter { !servers.contains($0) } }
    return servers
  }

  package var addresses: [SocketAddress] { addresses(configured) }

  package func hasServers(_ servers: LocalServers) -> Bool { !addresses(servers).isEmpty }

  /// The current addresses for a list, without servers that forward queries back to us.
  package func addresses(_ servers: LocalServers) -> [SocketAddress] {
    let known = known(servers)
    guard let circular = loopGuard?.circular, !circular.isEmpty else { return known }
    return known.filter { !circular.contains($0) }
  }

  private func known(_ servers: LocalServers) -> [SocketAddress] {
    var addresses: [SocketAddress] = []
    for entry in servers.entries {
      switch entry {
      case .system: addresses += systemServers.filter { !addresses.contains($0) }
      case .address(let address): if !addresses.contains(address) { addresses.append(address) }
      }
    }
    return addresses
  }

  package func ask(
    _ question: HTTPDNSQuestion, _ servers: LocalServers, timeout: Duration
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    loop.assertCurrent()
    let asked = addresses(servers)
    let reply = await client.ask(
      Question(name: question.name, type: question.type), dnssecOK: question.dnssecOK,
      checkingDisabled: question.checkingDisabled, servers: asked, timeout: timeout)
    switch reply {
    case .failure(let reason):
      if reason == .timedOut { loopGuard?.suspect(asked) }
      return .failure(failure(UpstreamFailure(reason), of: asked))
    case .success(let reply):
      do throws(HTTPDNSFailure) {
        return .success(
          UpstreamAnswer(try HTTPDNSAnswer(reply.message, to: question), server: reply.server.description))
      } catch {
        return .failure(failure(UpstreamFailure(error), of: asked))
      }
    }
  }

  /// Adds the servers that were asked to a failure, human-readable; the reason is that of the last server.
  private func failure(_ reason: UpstreamFailure, of asked: [SocketAddress]) -> UpstreamFailure {
    guard !asked.isEmpty else { return reason }
    var reason = reason
    reason.steps = ["\(asked.map(\.description).joined(separator: ", ")): \(reason.reason)"]
    return reason
  }
}
