// ResolverWatch.swift -- tells when the network hands out other resolvers.
//
// On the loop's thread only. It wakes up when something happens to the files, and never by itself.

import EventLoop

/// Watches the files that name this machine's resolvers. Ends with the object. Loop thread only.
public final class ResolverWatch {
  /// What was found last.
  public private(set) var current: SystemResolvers
  /// Whether the files are watched; where the kernel gives no watch, only `check` finds something new.
  public var isWatching: Bool { watch != nil }

  private let paths: [String]
  private let listeners: [SocketAddress]
  private let changed: (SystemResolvers) -> Void
  private var watch: PathWatch?

  /// What happens to the files within this time is one change.
  private static let quiet = Duration.milliseconds(200)

  /// Calls `changed` a moment after `SystemResolvers.find` has come to give something else than before. Files that are
  /// replaced, vanish or appear are noticed, also those behind symbolic links and in folders that do not exist yet.
  ///
  /// - Parameters:
  ///   - paths: where to look, absolute.
  ///   - listeners: where this program receives queries.
  public init(
    on loop: EventLoop, paths: [String] = SystemResolvers.usualPaths, notAt listeners: [SocketAddress],
    changed: @escaping (SystemResolvers) -> Void
  ) {
    self.paths = paths
    self.listeners = listeners
    self.changed = changed
    current = SystemResolvers(servers: [], searchDomains: [])
    // Watched before they are read: nothing is missed between.
    watch = PathWatch(paths, on: loop, quiet: ResolverWatch.quiet) { [unowned self] in check() }
    current = SystemResolvers.find(paths: paths, notAt: listeners)
  }

  /// Looks now, and reports what is new: for a change of the network, after which other addresses are this machine's.
  ///
  /// - Returns: whether there was something new.
  @discardableResult
  public func check() -> Bool {
    let found = SystemResolvers.find(paths: paths, notAt: listeners)
    guard found != current else { return false }
    current = found
    changed(found)
    return true
  }
}
