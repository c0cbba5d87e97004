// ForwarderControl.swift -- what operators can read from a running forwarder and do with it, beyond its resolver.
//
// Resolver's loop only.

import BusyNames
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

/// All statistics of one moment.
package struct DaemonNumbers: Sendable {
  /// The statistics that the metrics show, too.
  package var statistics: ForwarderStatistics
  /// The counts over all names, as Alibaba's SDKs define them.
  package var counts: NameCounts
  /// The network that the machine is on: the interface of the default route; empty without one.
  package var network: String
  /// Names whose clients got SERVFAIL, most recent first.
  package var failing: [FailingName] = []
}

/// The counts of the busiest names, at one moment.
package struct BusyNamesReport: Sendable {
  /// The names, busiest first.
  package var reports: [NameReport]
  /// The network that the machine is on: the interface of the default route; empty without one.
  package var network: String
}

extension Forwarder {
  /// Reads all statistics of this moment.
  package func numbers() -> DaemonNumbers {
    let statistics = statistics.read()
    var counts = resolver.assumeIsolated { $0.names.totals }
    counts.cacheDnsNum = statistics.queries.count(.hit) + statistics.queries.count(.stale)
    return DaemonNumbers(
      statistics: statistics, counts: counts, network: Forwarder.network, failing: failingNames.report(now: loop.now))
  }

  /// The counts of the busiest names. Call it from a task that prefers the loop.
  package func busyNames() async -> BusyNamesReport {
    BusyNamesReport(reports: await resolver.nameReports(), network: Forwarder.network)
  }

  /// Refreshes a name; see `Resolver.refresh`. Call it from a task that prefers the loop.
  ///
  /// - Parameter types: if empty, the cached types, and also `refresh.types` if nothing or NXDOMAIN is cached.
  package func refresh(_ name: DomainName, _ types: [RecordType]) async -> RefreshSummary {
    func routed(_ types: [RecordType]) -> [(type: RecordType, route: UInt16)] {
      types.compactMap { type in route(of: name, type).map { (type, $0) } }
    }
    guard types.isEmpty else { return await resolver.refresh(name, types: routed(types), onlyThese: true) }
    let cached = await resolver.console { await $0.cachedTypes(of: name) }
    let isEnough = !cached.isEmpty && !cached.contains(RecordType(0))
    return await resolver.refresh(name, types: isEnough ? [] : routed(configuration.refresh.types), onlyThese: false)
  }

  private static var network: String { (try? NetworkIdentity.read())?.interface ?? "" }
}

extension Forwarder {
  /// Asks every provider and each of the network's resolvers at once for a name's addresses. Runs the loop until all
  /// have answered or timed out; each provider's transfer is billed.
  package func opinions(on name: DomainName, _ types: [RecordType] = [.a, .aaaa]) -> [Opinion] {
    runLoop { [resolver] in await resolver.console { await $0.opinions(on: name.lowercased, types) } } ?? []
  }

  /// Asks the same for IPv4 addresses, and also returns the providers' states afterwards.
  package func examination(with name: DomainName) -> (opinions: [Opinion], reports: [ProviderReport]) {
    runLoop { [resolver] in
      let opinions = await resolver.console { await $0.opinions(on: name.lowercased, [.a]) }
      return (opinions, await resolver.providerReports())
    } ?? ([], [])
  }

  /// Asks one provider, past rules and cache; nil if no provider has that name or it cannot serve the question.
  package func ask(_ question: Question, of provider: String) -> ResolvedAnswer? {
    let question = HTTPDNSQuestion(name: question.name.lowercased, type: question.type)
    return runLoop { [resolver] in await resolver.console { await $0.ask(question, of: provider) } } ?? nil
  }
}

extension ResolvedAnswer {
  /// Converts a local answer to a question with that QNAME.
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
