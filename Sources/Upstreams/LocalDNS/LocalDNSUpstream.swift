// LocalDNSUpstream.swift -- the network's plain resolvers as an upstream. Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import HTTPDNS
import LocalDNS

/// LocalDNS: selects the servers and converts their responses into answers.
package final class LocalDNSUpstream: LocalUpstream {
  private let client: any LocalDNSTransport
  private let loop: any Loop
  /// The resolvers that the network announces, without our own addresses.
  package var systemServers: [PlainResolver]
  private var configured: [Configuration.LocalServer]
  private var others: [[Configuration.LocalServer]]
  private let loopGuard: LoopGuard?

  /// - Parameters:
  ///   - loop: the resolver's loop.
  ///   - configured: the resolvers that the configuration lists for LocalDNS.
  ///   - others: the resolvers of routing rules.
  ///   - loopGuard: excludes servers that forward queries back to us.
  package init(
    _ client: any LocalDNSTransport, on loop: any Loop, systemServers: [PlainResolver],
    configured: [Configuration.LocalServer],
    others: [[Configuration.LocalServer]] = [], loopGuard: LoopGuard? = nil
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
  package func use(configured: [Configuration.LocalServer], others: [[Configuration.LocalServer]]) {
    loop.assertCurrent()
    self.configured = configured
    self.others = others
  }

  /// Whether any list includes the resolvers of the network.
  package var usesSystemServers: Bool { ([configured] + others).contains { $0.contains(.system) } }

  /// Every server that may be asked, including those that forward queries back to us.
  package var allServers: [PlainResolver] {
    var servers: [PlainResolver] = []
    for list in [configured] + others { servers += known(list).filter { !servers.contains($0) } }
    return servers
  }

  package var addresses: [PlainResolver] { addresses(configured) }

  package func hasServers(_ servers: [Configuration.LocalServer]) -> Bool {
    known(servers).contains { loopGuard?.mayAllow($0) ?? true }
  }

  /// The current addresses for a list, without servers that forward queries back to us, or may do so.
  package func addresses(_ servers: [Configuration.LocalServer]) -> [PlainResolver] {
    known(servers).filter { loopGuard?.allows($0) ?? true }
  }

  private func known(_ servers: [Configuration.LocalServer]) -> [PlainResolver] {
    servers.addresses(system: systemServers)
  }

  package func ask(
    _ question: HTTPDNSQuestion, _ servers: [Configuration.LocalServer], timeout: Duration
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    loop.assertCurrent()
    let begin = loop.now
    await loopGuard?.decision(about: known(servers))
    var read: (id: UInt16, answer: HTTPDNSAnswer)?
    let reply = await client.ask(
      Question(name: question.name, type: question.type), dnssecOK: question.dnssecOK,
      checkingDisabled: question.checkingDisabled, servers: addresses(servers), timeout: begin + timeout - loop.now
    ) { message in
      do throws(HTTPDNSFailure) {
        read = (message.id, try HTTPDNSAnswer(message, to: question))
        return nil
      } catch { return error.description }
    }
    switch reply {
    case .failure(let failure):
      loopGuard?.suspect(failure.steps.filter { $0.reason == .timedOut }.map(\.server))
      var reason = UpstreamFailure(failure.reason)
      reason.steps = failure.steps.map { "\($0.server): \(UpstreamFailure($0.reason).reason)" }
      return .failure(reason)
    case .success(let reply):
      // Nearly always the message that was read last.
      guard var answer = read?.id == reply.message.id ? read?.answer : try? HTTPDNSAnswer(reply.message, to: question)
      else { return .failure(UpstreamFailure(.unusable(.malformed))) }
      answer.responseCode = reply.message.responseCode
      var upstreamAnswer = UpstreamAnswer(answer: answer, server: reply.server.description)
      upstreamAnswer.isOutOfOrder = reply.isOutOfOrder
      upstreamAnswer.isTruncated = reply.isTruncated
      return .success(upstreamAnswer)
    }
  }
}
