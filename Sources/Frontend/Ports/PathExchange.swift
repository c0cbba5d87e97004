// PathExchange.swift -- replaces a listener thread's query path while the thread runs, without a lock.
//
// The thread checks once a batch, and passes the old path back: to free the last reference to the tables of a large
// hosts file takes milliseconds, which must not happen on a listener thread.

import Synchronization

/// One thread's query path and its replacement.
final class PathExchange: @unchecked Sendable {
  /// Owned by the listener thread, once that runs.
  private var path: QueryPath
  /// The path that was offered last, or the first one: `offer` makes the next one from it.
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

  /// Takes an offered path while there is nothing to answer. Listener thread only.
  func takeOffered() { _ = current }

  @inline(never)
  private func replace() {
    guard let next = offered.load(ordering: .acquiring) else { return }
    let old = Unmanaged.passRetained(path)
    path = next.takeRetainedValue()
    returned.store(old, ordering: .relaxed)
    // Another path may be offered from here on.
    offered.store(nil, ordering: .releasing)
  }

  /// Offers the thread a path with other tables. Resolver's loop only.
  ///
  /// - Precondition: the thread has taken the path that was offered before.
  func offer(_ tables: QueryTables) {
    latest = latest.successor(tables)
    let old = offered.exchange(.passRetained(latest), ordering: .acquiringAndReleasing)
    precondition(old == nil, "two paths at once for one thread")
  }

  /// Whether the thread has taken the offered path; frees its old one. Resolver's loop only.
  func hasTaken() -> Bool {
    guard offered.load(ordering: .acquiring) == nil else { return false }
    returned.exchange(nil, ordering: .acquiringAndReleasing)?.release()
    return true
  }
}
