// ForwarderControl.swift -- what a person sees of a running forwarder, and lets it do, beyond its resolver.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import Frontend
import HTTPDNS
import MessageCache
import NetworkWatch
import Resolver
import Routing
import Upstreams

/// All numbers of a moment.
package struct DaemonNumbers: Sendable {
  /// Those that metrics have, too.
  package var statistics: ForwarderStatistics
  /// Questions of all names, as Alibaba's SDKs count them.
  package var counts: NameCounts
  /// The network that the machine is on: the interface of the default route; empty without one.
  package var network: String
  /// Names whose clients got SERVFAIL, the last one first.
  package var failing: [FailingName] = []

  /// Those numbers.
  package init(
    statistics: ForwarderStatistics, counts: NameCounts, network: String, failing: [FailingName] = []
  ) {
    self.statistics = statistics
    self.counts = counts
    self.network = network
    self.failing = failing
  }
}

/// What was counted for the busiest names.
package struct BusyNamesReport: Sendable {
  /// The busiest one first.
  package var reports: [NameReport]
  /// The network that the machine is on: the interface of the default route; empty without one.
  package var network: String
}

extension Forwarder {
  /// All numbers of this moment.
  package func numbers() -> DaemonNumbers {
    let statistics = statistics.read()
    var counts = resolver.assumeIsolated { $0.names.totals }
    counts.cacheDnsNum = statistics.queries.count(.hit) + statistics.queries.count(.stale)
    return DaemonNumbers(
      statistics: statistics, counts: counts, network: Forwarder.network, failing: failingNames.report(now: loop.now))
  }

  /// What was counted for the busiest names. To be called from a task that prefers the loop.
  package func busyNames() async -> BusyNamesReport {
    BusyNamesReport(reports: await resolver.nameReports(), network: Forwarder.network)
  }

  /// Asks anew for a name; see `Resolver.refresh`. To be called from a task that prefers the loop.
  ///
  /// - Parameter types: none for whatever is kept, and for `refresh.types` where that is nothing, or the denial of the name.
  package func refresh(_ name: DomainName, _ types: [RecordType]) async -> RefreshSummary {
    func routed(_ types: [RecordType]) -> [(type: RecordType, route: UInt16)] {
      types.compactMap { type in route(of: name, type).map { (type, $0) } }
    }
    guard types.isEmpty else { return await resolver.refresh(name, types: routed(types), onlyThese: true) }
    let kept = await resolver.keptTypes(of: name)
    let isEnough = !kept.isEmpty && !kept.contains(RecordType(0))
    return await resolver.refresh(name, types: isEnough ? [] : routed(configuration.refresh.types), onlyThese: false)
  }

  private static var network: String { (try? NetworkIdentity.read())?.interface ?? "" }
}

extension Forwarder {
  /// Asks every provider and every of the network's resolvers at once for a name's addresses. Runs the loop until all have
  /// answered or their time is over; each provider's transfer is billed.
  package func opinions(on name: DomainName, _ types: [RecordType] = [.a, .aaaa]) -> [Opinion] {
    runLoop { [resolver] in await resolver.opinions(on: name.lowercased, types) } ?? []
  }

  /// The same for IPv4 addresses, and the providers' states afterwards.
  package func examination(with name: DomainName) -> (opinions: [Opinion], reports: [ProviderReport]) {
    runLoop { [resolver] in
      let opinions = await resolver.opinions(on: name.lowercased, [.a])
      return (opinions, await resolver.providerReports())
    } ?? ([], [])
  }

  /// Asks one provider, past rules and cache; nil where no provider has that name or it cannot serve the question.
  package func ask(_ question: Question, of provider: String) -> ResolvedAnswer? {
    let question = HTTPDNSQuestion(name: question.name.lowercased, type: question.type)
    return runLoop { [resolver] in await resolver.ask(question, of: provider) } ?? nil
  }
}

extension ResolvedAnswer {
  /// A local answer to a question of that name.
  init(_ answer: LocalAnswer, to name: DomainName) {
    let records = answer.records.map { ResourceRecord(owner: name, type: $0.type, ttl: $0.ttl, rdata: $0.rdata) }
    let authorities = answer.soaOwner.map { owner in
      switch owner {
      case .queryName: [SyntheticSOA.record(name, ttl: LocalAnswer.ttl)]
      case .zone(let zone): [SyntheticSOA.record(zone, ttl: LocalAnswer.ttl)]
      }
    }
    self.init(
      response: ComposedResponse(answer.responseCode, to: name, answers: records, authorities: authorities ?? [])
        ?? ComposedResponse(.servFail),
      lifetime: 0, source: .ourselves)
  }
}
