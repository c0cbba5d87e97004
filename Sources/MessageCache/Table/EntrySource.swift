// EntrySource.swift -- the source of a cache entry, as the one octet that the entry stores.

/// The source of a cache entry.
package enum EntrySource: Hashable, Sendable {
  /// The daemon itself, or a provider that is no longer configured.
  case unknown
  /// A plain resolver.
  case localDNS
  /// A provider, by the number that it keeps as long as it is configured: at start its place in the configuration.
  case provider(Int)

  private static let firstProvider = 2

  package init(number: UInt8) {
    switch number {
    case 0: self = .unknown
    case 1: self = .localDNS
    default: self = .provider(Int(number) - EntrySource.firstProvider)
    }
  }

  /// The octet in the entry; 0 if a provider's number does not fit, so that no refresh asks it.
  package var number: UInt8 {
    switch self {
    case .unknown: 0
    case .localDNS: 1
    case .provider(let index): UInt8(exactly: index + EntrySource.firstProvider) ?? 0
    }
  }
}
