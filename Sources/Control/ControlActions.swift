// ControlActions.swift -- what the commands of the control socket do, as closures: the daemon's, or a test's.

import DNSWire
import Forwarder
import MessageCache
import Resolver
import Upstreams

/// What the commands of the control socket do. Called on the loop.
public struct ControlActions: Sendable {
  /// Forgets what is known of names.
  package var flush: @Sendable (CacheSelection) async -> FlushCounts
  /// How the providers fare.
  package var providers: @Sendable () async -> [ProviderReport]
  /// What is kept of a name.
  package var content: @Sendable (DomainName) async -> NameContent
  /// Asks anew for a name in those types; none for whatever is kept.
  package var refresh: @Sendable (DomainName, [RecordType]) async -> RefreshSummary
  /// Lets an address go last in the answers to a name.
  package var reportBad: @Sendable (IPAddress, DomainName) async -> BadAddressOutcome
  /// All numbers of the moment.
  package var numbers: @Sendable () async -> DaemonNumbers
  /// What was counted for the busiest names, the busiest one first.
  package var names: @Sendable () async -> BusyNamesReport
  /// Reads the configuration again.
  package var reload: @Sendable () async -> ReloadReport
  /// The path of the file that a reload reads.
  public var file: String

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

  /// What a forwarder can do, which has to live as long. Its resolver is looked up for each request.
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
  }
}
