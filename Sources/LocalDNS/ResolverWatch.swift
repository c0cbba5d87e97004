// ResolverWatch.swift -- reports when the network announces other resolvers.
//
// On the loop's thread only. Wakes up only when the files change; it does not poll.

import EventLoop

/// Watches the files that list this machine's resolvers until it is released. Loop thread only.
public final class ResolverWatch {
  /// The latest result.
  public private(set) var current: SystemResolvers

  private let paths: [String]
  private let listeners: [SocketAddress]
  private let changed: (SystemResolvers) -> Void
  /// Nil if the kernel does not watch the files: only `check` detects changes then.
  private(set) var watch: PathWatch?

  /// Changes within this time count as one.
  private static let quiet = Duration.milliseconds(200)

  /// Calls `changed` shortly after the result of `SystemResolvers` changes. Detects files that are replaced,
  /// deleted or created, also behind symbolic links and in directories that do not exist yet.
  ///
  /// - Parameters:
  ///   - paths: the files, as absolute paths.
  ///   - listeners: the addresses where the daemon receives queries.
  public init(
    on loop: EventLoop, paths: [String] = SystemResolvers.usualPaths, notAt listeners: [SocketAddress],
    changed: @escaping (SystemResolvers) -> Void
  ) {
    self.paths = paths
    self.listeners = listeners
    self.changed = changed
    current = SystemResolvers()
    // Watch before reading, so that no change is missed.
    watch = PathWatch(paths, on: loop, quiet: ResolverWatch.quiet) { [weak self] in self?.check() }
    current = SystemResolvers(paths: paths, notAt: listeners)
  }

  /// Reads the files now and reports a change. Call it after a change of network, because the machine's own addresses
  /// change too.
  ///
  /// - Returns: whether there was a change.
  @discardableResult
  public func check() -> Bool {
    let found = SystemResolvers(paths: paths, notAt: listeners)
    guard found != current else { return false }
    current = found
    changed(found)
    return true
  }
}
