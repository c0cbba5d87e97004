// LocalDNSUpstream.swift -- the network's plain resolvers as the resolver sees them. Resolver's loop only.

import DNSWire
import EventLoop
import Glibc
import HTTPDNS
import LocalDNS

/// LocalDNS: which servers there are, and their replies as answers.
package final class LocalDNSUpstream: LocalUpstream, @unchecked Sendable {
  private let client: any LocalDNSTransport
  /// What the network hands out, without ourselves.
  package var systemServers: [SocketAddress]
  private var configured: LocalServers
  private var others: [LocalServers]
  private let loopGuard: LoopGuard?

  /// - Parameters:
  ///   - configured: the resolvers that the configuration names for LocalDNS.
  ///   - others: the resolvers of rules.
  ///   - loopGuard: knows servers that lead back to us.
  package init(
    _ client: any LocalDNSTransport, systemServers: [SocketAddress], configured: LocalServers,
    others: [LocalServers] = [], loopGuard: LoopGuard? = nil
  ) {
    self.client = client
    self.systemServers = systemServers
    self.configured = configured
    self.others = others
    self.loopGuard = loopGuard
  }

  /// The machine is on another network.
  package func networkHasChanged() { client.networkHasChanged() }

  /// Goes by another configuration from now on.
  package func use(configured: LocalServers, others: [LocalServers]) {
    self.configured = configured
    self.others = others
  }

  /// Whether anybody asks the network's own.
  package var usesSystemServers: Bool { ([configured] + others).contains { $0.entries.contains(.system) } }

  /// Every server that may be asked, those that lead back to us included.
  package var allServers: [SocketAddress] {
    var servers: [SocketAddress] = []
    for list in [configured] + others { servers += known(list).filter { !servers.contains($0) } }
    return servers
  }

  package var addresses: [SocketAddress] { addresses(configured) }

  package func hasServers(_ servers: LocalServers) -> Bool { !addresses(servers).isEmpty }

  /// The addresses that stand for those servers at present.
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
    let asked = addresses(servers)
    let reply = await client.ask(
      Question(name: question.name, type: question.type), dnssecOK: question.dnssecOK,
      checkingDisabled: question.checkingDisabled, servers: asked, timeout: timeout)
    switch reply {
    case .failure(let reason):
      if reason == .timedOut { loopGuard?.suspect(asked) }
      return .failure(failure(UpstreamFailure(reason), of: asked))
    case .success(let message):
      do throws(HTTPDNSFailure) {
        return .success(UpstreamAnswer(try HTTPDNSAnswer(message, to: question), server: "localdns"))
      } catch {
        return .failure(failure(UpstreamFailure(error), of: asked))
      }
    }
  }

  /// With whom was asked, for a person: the last of them has failed for that.
  private func failure(_ reason: UpstreamFailure, of asked: [SocketAddress]) -> UpstreamFailure {
    guard !asked.isEmpty else { return reason }
    var reason = reason
    reason.steps = ["\(asked.map(\.description).joined(separator: ", ")): \(reason.reason)"]
    return reason
  }
}
