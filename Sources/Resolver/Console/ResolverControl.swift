// ResolverControl.swift -- what a person may do to the running resolver, and see of it.

import EventLoop
import MessageCache
import Upstreams

/// What a flush has removed.
package struct FlushCounts: Sendable, Equatable {
  /// Cached responses.
  package var entries = 0
  /// Remembered failures.
  package var failures = 0
  /// Names and types that a provider had said that it does not list.
  package var notListed = 0
  /// Why the cache file still has what was removed; nil where it has not, or there is none.
  package var saveProblem: String?

  /// Nothing.
  package init() {}
}

extension Resolver {
  /// Steps of a removal in one turn of the loop: half a millisecond or so, after which queries come first.
  private static let removalSteps = 32

  /// Forgets what is known of those names: answers, fresh, stale and immutable, denials that cover them, failures, and
  /// what providers have said that they do not list. Names that are always kept are fetched again at once.
  ///
  /// Questions in flight continue, and their answers are stored. Call it from a task that prefers the loop.
  package func flush(_ names: CacheSelection) async -> FlushCounts {
    var counts = FlushCounts()
    counts.failures = failures.remove(names)
    deniedNames.remove(names)
    for upstream in upstreams { counts.notListed += upstream.forgetNotListed(names) }
    var removal = CacheRemoval(of: names, from: cache)
    removal.advance(steps: Resolver.removalSteps)
    while !removal.isDone {
      await loop.sleep(for: .zero)
      removal.advance(steps: Resolver.removalSteps)
    }
    counts.entries = removal.count
    refresher?.hasBeenFlushed(names)
    if counts.entries > 0, let save { counts.saveProblem = await save() }
    return counts
  }

  /// How the providers fare, in the order of the configuration.
  package func providerReports() -> [ProviderReport] { upstreams.map(\.report) }

  /// What was counted for the busiest names. To be called from a task that prefers the loop.
  package func nameReports() async -> [NameReport] { await names.report() }
}
