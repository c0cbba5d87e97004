// EncryptedCounters.swift -- what happens to the connections of the encrypted listeners.

import Synchronization

/// Why a connection was closed before its first octet was answered.
package enum EncryptedRefusal: Int, CaseIterable, Sendable {
  /// Its client is not in `encrypted.allow`.
  case allow
  /// Its client opens more connections than `encrypted.new_per_second` allows.
  case rate
  /// Its client has `encrypted.per_client` connections with queries in flight.
  case client
  /// All `encrypted.connections` are taken.
  case full
  /// A proxy has sent no PROXY header, or a wrong one.
  case proxy

  /// The value of the metric's label.
  package var word: String { "\(self)" }
}

/// How a TLS handshake ended.
package enum HandshakeResult: Int, CaseIterable, Sendable {
  case full
  case resumed
  case failed

  /// The value of the metric's label.
  package var word: String { "\(self)" }
}

/// Counts what happens to connections. The listeners' thread writes; any thread reads.
package final class EncryptedCounters: Sendable {
  private let counts = Mutex(EncryptedTotals())

  package init() {}

  /// The counts so far.
  package var totals: EncryptedTotals { counts.withLock { $0 } }

  func count(_ refusal: EncryptedRefusal) { counts.withLock { $0.refused[refusal.rawValue] += 1 } }

  func count(_ result: HandshakeResult) { counts.withLock { $0.handshakes[result.rawValue] += 1 } }

  func countDisplaced() { counts.withLock { $0.displaced += 1 } }

  func setOpen(_ connections: Int) { counts.withLock { $0.open = connections } }
}

/// The counts of the encrypted listeners at one moment.
package struct EncryptedTotals: Sendable, Equatable {
  /// Connections that are open.
  package fileprivate(set) var open = 0
  /// Connections so far that were closed in favour of a new one.
  package fileprivate(set) var displaced: UInt64 = 0
  fileprivate var refused = [UInt64](repeating: 0, count: EncryptedRefusal.allCases.count)
  fileprivate var handshakes = [UInt64](repeating: 0, count: HandshakeResult.allCases.count)

  package init() {}

  /// Connections so far that were refused for that reason.
  package subscript(refusal: EncryptedRefusal) -> UInt64 { refused[refusal.rawValue] }

  /// Handshakes so far with that result.
  package subscript(result: HandshakeResult) -> UInt64 { handshakes[result.rawValue] }
}
