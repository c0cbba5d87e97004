// RefreshPrice.swift -- what a refresh costs the provider's customer.

/// What a transfer of refreshing costs.
package struct RefreshPrice: Hashable, Sendable {
  /// Whether it is billed: billing units are counted then, and else transfers.
  package var isBilled: Bool
  package var perTransfer: Int
  /// For each answer that is awaited.
  package var perAnswer: Int

  /// Nobody is billed.
  package static let free = RefreshPrice(isBilled: false, perTransfer: 1, perAnswer: 0)
}
