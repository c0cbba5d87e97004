// StoreDialer.swift -- makes the connections of one client or stream.

import EventLoop

/// The order of the store's addresses: those that took a connection and said nothing come last. Loop thread only.
final class StoreAddressOrder {
  private var silent: [SocketAddress] = []

  private static let most = 8

  /// The addresses in the order in which to try them.
  func sorted(_ addresses: [SocketAddress]) -> [SocketAddress] {
    addresses.filter { !silent.contains($0) } + silent.filter { addresses.contains($0) }
  }

  /// An address took a connection and said nothing in time.
  func markSilent(_ address: SocketAddress) {
    silent.removeAll { $0 == address }
    silent = silent.suffix(StoreAddressOrder.most - 1) + [address]
  }

  /// An address has answered.
  func markResponsive(_ address: SocketAddress) { silent.removeAll { $0 == address } }
}

/// What all connections of an owner share. Loop thread only.
final class StoreDialer {
  let settings: StoreSettings
  let loop: EventLoop
  private let resolve: StoreResolver
  private let replyLimit: Int
  private let order = StoreAddressOrder()
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
    return StoreConnection(settings, tls, order, replyLimit: replyLimit, on: loop, resolve: resolve, report: report)
  }
}
