// CurrentNetwork.swift -- the network that the machine is on, as a number that any thread may read.

import Synchronization

/// The network that new answers belong to. Any thread.
public final class CurrentNetwork: Sendable {
  @usableFromInline let current = Atomic<UInt32>(0)
  private let cache: MessageCache

  /// Starts with an unknown network; `cache` receives each change.
  public init(of cache: MessageCache) { self.cache = cache }

  /// The network's number; 0 until it is known.
  public var number: UInt32 { @inlinable @_noAllocation get { current.load(ordering: .relaxed) } }

  /// Sets the number of another network, here and in the cache.
  public func change(to number: UInt32) {
    current.store(number, ordering: .relaxed)
    cache.setNetwork(number)
  }
}
