// RefreshPrice.swift -- what a refresh costs the customer of a provider.

/// The cost of a transfer that refreshes answers.
package struct RefreshPrice: Hashable, Sendable {
  /// Whether the transfer is billed. If so, the other values are billing units, otherwise transfers.
  package var isBilled: Bool
  package var perTransfer: Int
  /// The additional cost of each name, in one address family or in both.
  package var perName: Int
  /// The additional cost of each expected answer.
  package var perAnswer: Int

  package init(isBilled: Bool, perTransfer: Int, perName: Int = 0, perAnswer: Int) {
    self.isBilled = isBilled
    self.perTransfer = perTransfer
    self.perName = perName
    self.perAnswer = perAnswer
  }

  /// The cost of a transfer that is not billed.
  package static let free = RefreshPrice(isBilled: false, perTransfer: 1, perAnswer: 0)
}
