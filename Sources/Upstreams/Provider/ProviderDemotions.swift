// ProviderDemotions.swift -- how often a provider, or a server of it, was put behind others.

/// Numbers by what was put behind.
package struct ProviderDemotions: Sendable, Equatable {
  /// What was put behind others, and why.
  package enum Kind: String, CaseIterable, Sendable {
    /// A server that has failed: the next one is asked first.
    case server
    /// The provider, whose servers have all failed.
    case down
    /// The provider, which refuses to serve.
    case aside
  }

  private var counts = [Int](repeating: 0, count: Kind.allCases.count)

  /// None.
  package init() {}

  /// How often that happened.
  package subscript(kind: Kind) -> Int { counts[ProviderDemotions.place(kind)] }

  /// It has happened once more.
  package mutating func count(_ kind: Kind) { counts[ProviderDemotions.place(kind)] += 1 }

  private static func place(_ kind: Kind) -> Int { Kind.allCases.firstIndex(of: kind)! }
}
