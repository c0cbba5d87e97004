// StoreDialer.swift -- makes the connections of one client or stream.

import EventLoop

/// What all connections of an owner share. Loop thread only.
final class StoreDialer {
  let settings: StoreSettings
  let loop: EventLoop
  private let resolve: StoreResolver
  private let replyLimit: Int
  private var tls: StoreTLSContext?

  init(_ settings: StoreSettings, replyLimit: Int, on loop: EventLoop, resolve: @escaping StoreResolver) {
    self.settings = settings
    self.replyLimit = replyLimit
    self.loop = loop
    self.resolve = resolve
  }

  /// Begins to connect; reports later.
  ///
  /// - Throws: `StoreFault.tls` if the trusted certificates cannot be read.
  func connect(report: @escaping (StoreConnection.Report) -> Void) throws(StoreFault) -> StoreConnection {
    if let trust = settings.tls, tls?.isCurrent != true { tls = try StoreTLSContext(trust) }
    return StoreConnection(settings, tls, replyLimit: replyLimit, on: loop, resolve: resolve, report: report)
  }
}
