// ForwarderControl.swift -- what a person sees of a running forwarder, and lets it do, beyond its resolver.
//
// Resolver's loop only.

import BusyNames
import Configuration
import DNSWire
import NetworkWatch

/// All numbers of a moment.
public struct DaemonNumbers: Sendable {
  /// Those that metrics have, too.
  public var statistics: ForwarderStatistics
  /// Questions of all names, as Alibaba's SDKs count them.
  public var counts: NameCounts
  /// The network that the machine is on: the interface of the default route; empty without one.
  public var network: String
}

/// What was counted for the busiest names.
public struct BusyNamesReport: Sendable {
  /// The busiest one first.
  public var reports: [NameReport]
  /// The network that the machine is on: the interface of the default route; empty without one.
  public var network: String
}

extension Forwarder {
  /// All numbers of this moment.
  public func numbers() -> DaemonNumbers {
    let statistics = statistics.read()
    var counts = resolver.assumeIsolated { $0.names.totals }
    counts.cacheDnsNum = statistics.queries.count(.hit) + statistics.queries.count(.stale)
    return DaemonNumbers(statistics: statistics, counts: counts, network: Forwarder.network)
  }

  /// What was counted for the busiest names. To be called from a task that prefers the loop.
  public func busyNames() async -> BusyNamesReport {
    BusyNamesReport(reports: await resolver.nameReports(), network: Forwarder.network)
  }

  /// Asks anew for a name; see `Resolver.refresh`. To be called from a task that prefers the loop.
  ///
  /// - Parameter types: none for whatever is kept, and for `refresh.types` where that is nothing, or the denial of the name.
  public func refresh(_ name: DomainName, _ types: [RecordType]) async -> RefreshSummary {
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
