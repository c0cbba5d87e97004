// ControlActions.swift -- the actions behind the control socket's commands, as closures: the daemon's, or a test's.

import DNSWire
import Forwarder
import Frontend
import MessageCache
import Resolver
import Upstreams

/// The actions behind the control socket's commands. Called on the loop.
public struct ControlActions: Sendable {
  /// Removes names from the cache.
  package var flush: @Sendable (CacheSelection) async -> FlushCounts
  /// The state of each provider.
  package var providers: @Sendable () async -> [ProviderReport]
  /// The cache's entries of a name.
  package var content: @Sendable (DomainName) async -> NameContent
  /// Fetches a name again in those types; none for the types that the cache has.
  package var refresh: @Sendable (DomainName, [RecordType]) async -> RefreshSummary
  /// Puts an address last in the answers to a name.
  package var reportBad: @Sendable (IPAddress, DomainName) async -> BadAddressOutcome
  /// All numbers of the moment.
  package var numbers: @Sendable () async -> DaemonNumbers
  /// The counters of the busiest names, the busiest one first.
  package var names: @Sendable () async -> BusyNamesReport
  /// Reads the configuration again.
  package var reload: @Sendable () async -> ReloadReport
  /// The path of the file that a reload reads.
  public var file: String
  /// The whole cache, with so many of its busiest entries.
  package var overview: @Sendable (Int) async -> CacheOverview = { _ in CacheOverview() }
  /// Passes the queries that are answered from now on to a watch.
  package var watch: @Sendable (QueryWatch) -> Void = { _ in }
  /// Ends that.
  package var unwatch: @Sendable (QueryWatch) -> Void = { _ in }
  /// Logs a line about a reader of queries.
  public var log: @Sendable (String) -> Void = { _ in }

  /// Those closures.
  package init(
    flush: @escaping @Sendable (CacheSelection) async -> FlushCounts,
    providers: @escaping @Sendable () async -> [ProviderReport],
    content: @escaping @Sendable (DomainName) async -> NameContent,
    refresh: @escaping @Sendable (DomainName, [RecordType]) async -> RefreshSummary,
    reportBad: @escaping @Sendable (IPAddress, DomainName) async -> BadAddressOutcome,
    numbers: @escaping @Sendable () async -> DaemonNumbers, names: @escaping @Sendable () async -> BusyNamesReport,
    reload: @escaping @Sendable () async -> ReloadReport, file: String
  ) {
    self.flush = flush
    self.providers = providers
    self.content = content
    self.refresh = refresh
    self.reportBad = reportBad
    self.numbers = numbers
    self.names = names
    self.reload = reload
    self.file = file
  }

  /// The actions of a forwarder, which has to live as long. Its resolver is looked up for each request.
  ///
  /// - Parameter file: the path of the file that the reloader reads.
  package init(_ forwarder: Forwarder, _ reloader: Reloader, file: String) {
    // All of it runs on the forwarder's loop.
    nonisolated(unsafe) unowned let forwarder = forwarder
    self.init(
      flush: { await forwarder.resolver.flush($0) },
      providers: { await forwarder.resolver.providerReports() },
      content: { await forwarder.resolver.content(of: $0) },
      refresh: { await forwarder.refresh($0, $1) },
      reportBad: { await forwarder.resolver.reportBad($0, of: $1) },
      numbers: { forwarder.numbers() },
      names: { await forwarder.busyNames() },
      reload: { await reloader.reload() },
      file: file)
    overview = { await forwarder.resolver.overview(busiest: $0) }
    watch = { forwarder.queryLog.add($0) }
    unwatch = { forwarder.queryLog.remove($0) }
  }
}
