// ResolverControl.swift -- flushes the running resolver's caches and reports its counters.

import BusyNames
import DNSWire
import EventLoop
import MessageCache
import Refresh
import Upstreams

/// What a flush removed.
package struct FlushCounts: Sendable, Equatable {
  /// Cached responses.
  package var entries = 0
  /// Cached failures.
  package var failures = 0
  /// Names and types that a provider was known not to list.
  package var notListed = 0
  /// Why the cache file could not be saved and so still has the removed entries; nil if it was saved or did not have to
  /// be.
  package var saveProblem: String?
}

extension Resolver {
  /// Calls `body` with what reports and work on the whole cache need. Call it from a task that prefers the loop.
  package func console<Value: Sendable>(_ body: @Sendable (ResolverConsole) async -> Value) async -> Value {
    await body(makeConsole())
  }

  func makeConsole() -> ResolverConsole {
    ResolverConsole(
      cache: cache, store: store, network: network, loop: loop, memory: memory, local: localDNS.upstream,
      refresher: refresher,
      ranker: ranker, table: composer.table)
  }

  /// Applies the reports of a request; none of them if reports are off or exceed the limit of a second.
  package func take(_ batch: ReportBatch) -> ReportOutcome { makeConsole().take(batch) }

  /// Has the addresses of answers added to firewall sets from now on.
  package func use(_ sets: sending SetFiller) { store.sets = sets }

  /// Entries are being read from the cache file: until `learnNames` has ended, NXDOMAIN covers no names below.
  package func expectNames() { store.namesBelow.isWhole = false }

  /// Removes what is cached about names: fresh, stale and immutable answers, NXDOMAIN that covers them, failures, and
  /// what providers are known not to list. Names of `refresh.keep` whose answers went are fetched
  /// again at once.
  ///
  /// Questions in flight continue, and their answers are cached. Call it from a task that prefers the loop.
  ///
  /// - Parameter end: only what was stored before is removed.
  package func flush(_ names: NameSelection, storedBefore end: BootInstant? = nil) async -> FlushCounts {
    var counts = FlushCounts()
    // What was asked for before the start concerns entries of the cache file alone.
    if end.map({ $0 > createdAt }) ?? true {
      counts.failures = memory.remove(names)
      recent.removeAll()
      localDNS.forget(names)
      for upstream in upstreams { counts.notListed += upstream.forgetNotListed(names) }
    }
    let kept = refresher?.cached(among: names) ?? []
    var removal = CacheRemoval(of: names, from: cache, storedBefore: end?.nanoseconds ?? .max)
    await loop.inPortions {
      removal.advance()
      return removal.isDone
    }
    counts.entries = removal.count
    refresher?.mayHaveBeenFlushed(kept)
    if counts.entries > 0, let save { counts.saveProblem = await save() }
    return counts
  }

  /// The states and counters of the providers, in the order of the configuration.
  package func providerReports() -> [ProviderReport] {
    var reports = upstreams.map(\.report)
    for failure in memory.waiting(.everything, now: loop.now) where reports.indices.contains(failure.upstream) {
      reports[failure.upstream].failing.add(failure.reason)
    }
    return reports
  }

  /// The counters of the busiest names, the busiest one first. Call it from a task that prefers the loop.
  package func nameReports() async -> [NameReport] { await names.report() }
}
