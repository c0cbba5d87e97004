// ControlActions.swift -- what the commands of the control socket require from the daemon.

import DNSWire
import FirewallSets
import Fleet
import Forwarder
import Frontend
import ListStore
import Ranking
import Resolver
import Upstreams

/// The operations behind the commands of the control socket. Called on the loop, or from a task that prefers it.
package protocol ControlActions {
  /// The path of the file that a reload reads.
  var file: String { get }
  /// The address that names below `InstanceName.zone` have.
  var instance: IPAddress { get }
  /// Also replaces the cache file, if there is one. `reach` is nil if no other daemon was to be notified, or there is no store.
  func flush(_ names: FlushedNames, everywhere: Bool) async -> (counts: FlushCounts, reach: FlushReach?)
  /// The store that daemons share; nil without one.
  func fleet() async -> FleetReport?
  func providers() async -> [ProviderReport]
  /// The lists of rules.
  func lists() async -> [ListReport]
  /// Fetches a list, or all, and waits until they are in use.
  func updateLists(_ name: String?) async -> [ListUpdate]
  func findInLists(_ name: DomainName) async -> [ListHit]
  /// The firewall sets of rules as they are now; `refilled` adds all cached addresses to them before.
  func sets(refilled: Bool) async -> [SetStatus]
  func content(of name: DomainName) async -> NameContent
  func overview(busiest count: Int) async -> CacheOverview
  /// Fetches a name again with the given types; if there are none, with those in the cache.
  func refresh(_ name: DomainName, _ types: [RecordType]) async -> RefreshSummary
  /// Puts an address last in the cached answers to a name.
  func reportBad(_ address: IPAddress, of name: DomainName) async -> BadAddressOutcome
  /// Takes what programs saw when they used addresses.
  func take(_ batch: ReportBatch) async -> ReportOutcome
  func numbers() async -> DaemonNumbers
  /// The counters of the busiest names, busiest first.
  func names() async -> BusyNamesReport
  func reload() async -> ReloadReport
  /// Passes all queries answered from now on to a watch, until `unwatch`.
  func watch(_ watch: QueryWatch)
  func unwatch(_ watch: QueryWatch)
  /// A code with which a page of the dashboard signs in for a user of the control socket; nil if the dashboard is off.
  func makeDashboardCode(for user: UInt32) -> DashboardCode?
  /// Logs at level info.
  func log(_ line: String)
}

/// A code for the dashboard, and where it is used.
package struct DashboardCode: Sendable {
  /// `http://` and the address that the server listens on; a loopback address in place of a wildcard.
  package var place: String
  package var code: String
  /// Why a browser cannot sign in there, and how it can; nil if it can.
  package var hint: String?

  package init(place: String, code: String, hint: String?) { (self.place, self.code, self.hint) = (place, code, hint) }
}

/// The actions of a forwarder, which must outlive them. Its resolver is looked up for each request.
package struct ForwarderActions: ControlActions {
  private unowned let forwarder: Forwarder
  private let reloader: Reloader
  private let write: @Sendable (String) -> Void
  private let makeCode: (UInt32) -> DashboardCode?
  package let file: String

  /// - Parameters:
  ///   - file: the path of the file that the reloader reads.
  ///   - makeCode: makes a code for the dashboard; nil while that is off.
  ///   - log: writes a line to the daemon's log.
  package init(
    _ forwarder: Forwarder, _ reloader: Reloader, file: String, makeCode: @escaping (UInt32) -> DashboardCode?,
    log: @escaping @Sendable (String) -> Void
  ) {
    self.forwarder = forwarder
    self.reloader = reloader
    self.file = file
    self.makeCode = makeCode
    write = log
  }

  package var instance: IPAddress { forwarder.instance }

  package func flush(_ names: FlushedNames, everywhere: Bool) async -> (counts: FlushCounts, reach: FlushReach?) {
    await forwarder.resolver.flush(names, everywhere: everywhere)
  }

  package func fleet() async -> FleetReport? { await forwarder.fleetReport(withMembers: true) }

  package func providers() async -> [ProviderReport] { await forwarder.resolver.providerReports() }

  package func lists() async -> [ListReport] { forwarder.listReports() }

  package func updateLists(_ name: String?) async -> [ListUpdate] { await forwarder.updateLists(name) }

  package func findInLists(_ name: DomainName) async -> [ListHit] { await forwarder.findInLists(name) }

  package func sets(refilled: Bool) async -> [SetStatus] { await forwarder.setStatuses(refilled: refilled) }

  package func content(of name: DomainName) async -> NameContent {
    await forwarder.resolver.console { await $0.content(of: name) }
  }

  package func overview(busiest count: Int) async -> CacheOverview {
    await forwarder.resolver.console { await $0.overview(busiest: count) }
  }

  package func refresh(_ name: DomainName, _ types: [RecordType]) async -> RefreshSummary {
    await forwarder.refresh(name, types)
  }

  package func reportBad(_ address: IPAddress, of name: DomainName) async -> BadAddressOutcome {
    await forwarder.resolver.console { await $0.reportBad(address, of: name) }
  }

  package func take(_ batch: ReportBatch) async -> ReportOutcome { await forwarder.resolver.take(batch) }

  package func numbers() async -> DaemonNumbers { forwarder.numbers() }

  package func names() async -> BusyNamesReport { await forwarder.busyNames() }

  package func reload() async -> ReloadReport { await reloader.reload() }

  package func watch(_ watch: QueryWatch) { forwarder.queryLog.add(watch) }

  package func unwatch(_ watch: QueryWatch) { forwarder.queryLog.remove(watch) }

  package func makeDashboardCode(for user: UInt32) -> DashboardCode? { makeCode(user) }

  package func log(_ line: String) { write(line) }
}
