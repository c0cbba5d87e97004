// CurrentNetwork.swift -- the network that the machine is on, as a number that any thread may read.

import MessageCache
import Synchronization

/// Which network answers belong to now. Any thread.
package final class CurrentNetwork: Sendable {
  private let current = Atomic<UInt32>(0)
  private let cache: MessageCache

  /// Not known yet; `cache` learns of each change.
  package init(of cache: MessageCache) { self.cache = cache }

  /// The number; 0 until it is known.
  package var number: UInt32 {
    @_noAllocation get { current.load(ordering: .relaxed) }
  }

  /// Takes another network's number.
  package func change(to number: UInt32) {
    current.store(number, ordering: .relaxed)
    cache.setNetwork(number)
  }
}
