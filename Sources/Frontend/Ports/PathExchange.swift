// PathExchange.swift -- gives a listener thread another query path while it goes on, without a lock.
//
// The thread looks once a batch, and passes the old path back: whoever holds the last reference to the tables of a
// large hosts file spends milliseconds on freeing them, which must not be a listener.

import Synchronization

/// One thread's query path, and the one that is to replace it.
final class PathExchange: @unchecked Sendable {
  /// The listener thread's own, once it runs.
  private var path: QueryPath
  /// The last one that was offered, or the first: for who makes the next.
  private var latest: QueryPath
  private let offered = Atomic<Unmanaged<QueryPath>?>(nil)
  private let returned = Atomic<Unmanaged<QueryPath>?>(nil)

  init(_ path: QueryPath) {
    self.path = path
    latest = path
  }

  deinit {
    offered.load(ordering: .acquiring)?.release()
    returned.load(ordering: .acquiring)?.release()
  }

  /// The path for the next batch. Listener thread only.
  var current: QueryPath {
    if offered.load(ordering: .relaxed) != nil { replace() }
    return path
  }

  /// Takes what was offered, where there is nothing to answer. Listener thread only.
  func takeOffered() { _ = current }

  @inline(never)
  private func replace() {
    guard let next = offered.load(ordering: .acquiring) else { return }
    let old = Unmanaged.passRetained(path)
    path = next.takeRetainedValue()
    returned.store(old, ordering: .relaxed)
    // Only now may another one be offered.
    offered.store(nil, ordering: .releasing)
  }

  /// Gives the thread a path through other tables. Resolver's loop only.
  ///
  /// - Precondition: the one that was offered before has been taken.
  func offer(_ tables: QueryTables) {
    latest = latest.successor(tables)
    let old = offered.exchange(.passRetained(latest), ordering: .acquiringAndReleasing)
    precondition(old == nil, "two paths at once for one thread")
  }

  /// Whether the thread has taken what was offered; frees what it had before. Resolver's loop only.
  func hasTaken() -> Bool {
    guard offered.load(ordering: .acquiring) == nil else { return false }
    returned.exchange(nil, ordering: .acquiringAndReleasing)?.release()
    return true
  }
}
