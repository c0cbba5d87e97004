// StoreDialer.swift -- makes the connections of one client or stream.

import Configuration
import EventLoop
import Streams

/// Orders the store's addresses: those that accepted a connection but did not reply come last. Loop thread only.
final class StoreAddressOrder {
  /// Addresses that did not reply, the most recent last.
  private var silent: [SocketAddress] = []

  private static let most = 8

  /// The addresses in the order in which to try them.
  func sorted(_ addresses: [SocketAddress]) -> [SocketAddress] {
    addresses.filter { !silent.contains($0) } + silent.filter { addresses.contains($0) }
  }

  /// Call when an address has accepted a connection but did not reply in time.
  func markSilent(_ address: SocketAddress) {
    silent.removeAll { $0 == address }
    silent = silent.suffix(StoreAddressOrder.most - 1) + [address]
  }

  /// Call when an address has replied.
  func markResponsive(_ address: SocketAddress) { silent.removeAll { $0 == address } }
}

/// Makes the connections of one owner, which share settings, TLS context and order of addresses. Loop thread only.
final class StoreDialer {
  let settings: StoreSettings
  let loop: EventLoop
  private let resolve: StoreResolver
  private let replyLimit: Int
  private let order = StoreAddressOrder()
  private var tls: TLSClient?

  init(_ settings: StoreSettings, replyLimit: Int, on loop: EventLoop, resolve: @escaping StoreResolver) {
    self.settings = settings
    self.replyLimit = replyLimit
    self.loop = loop
    self.resolve = resolve
  }

  /// Starts to connect; `report` is never called during this call.
  ///
  /// - Throws: `StoreFault.tls` if the trusted certificates cannot be read.
  func connect(report: @escaping (StoreConnection.Report) -> Void) throws(StoreFault) -> StoreConnection {
    if let name = settings.tlsName { try renewTLS(for: name) }
    return StoreConnection(settings, tls, order, replyLimit: replyLimit, on: loop, resolve: resolve, report: report)
  }

  /// Reads the trusted certificates, if their file has changed.
  private func renewTLS(for name: String) throws(StoreFault) {
    let trust: TrustStore
    let file = settings.fleet.caFile ?? ""
    do throws(TrustFailure) {
      trust = try .load(extra: file)
    } catch {
      throw .tls(
        error == .noMemory ? "no memory" : "\(file): unreadable, or contains no PEM certificate")
    }
    guard tls?.trust !== trust else { return }
    tls = TLSClient(name, trust, resumes: false)
    if tls == nil { throw .tls("no memory") }
  }
}
