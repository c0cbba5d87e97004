// EventCounts.swift -- counts events of a provider by kind.

/// The number of events of each kind.
package struct EventCounts<Kind: Hashable & Sendable>: Sendable, Equatable {
  private var counts: [Kind: Int] = [:]

  /// The number of events of this kind.
  package subscript(kind: Kind) -> Int { counts[kind, default: 0] }

  /// The number of events of all kinds.
  package var total: Int { counts.values.reduce(0, +) }

  package mutating func count(_ kind: Kind) { counts[kind, default: 0] += 1 }
}

/// What was demoted, and why.
package enum ProviderDemotion: String, CaseIterable, Sendable {
  /// A server that failed: the next one is asked first.
  case server
  /// A provider whose servers have all failed.
  case down
  /// A provider that refuses to serve.
  case aside
}
