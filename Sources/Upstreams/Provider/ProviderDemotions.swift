// ProviderDemotions.swift -- counts how often a provider or one of its servers was demoted.

/// The number of demotions by kind.
package struct ProviderDemotions: Sendable, Equatable {
  /// What was demoted, and why.
  package enum Kind: String, CaseIterable, Sendable {
    /// A server that failed: the next one is asked first.
    case server
    /// A provider whose servers have all failed.
    case down
    /// A provider that refuses to serve.
    case aside
  }

  private var counts = [Int](repeating: 0, count: Kind.allCases.count)

  package init() {}

  /// The number of demotions of this kind.
  package subscript(kind: Kind) -> Int { counts[ProviderDemotions.place(kind)] }

  package mutating func count(_ kind: Kind) { counts[ProviderDemotions.place(kind)] += 1 }

  private static func place(_ kind: Kind) -> Int { Kind.allCases.firstIndex(of: kind)! }
}
