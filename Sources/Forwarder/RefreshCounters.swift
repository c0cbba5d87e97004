// RefreshCounters.swift -- what refreshing has done so far, in numbers.

/// Numbers about refreshing.
public struct RefreshCounters: Sendable, Equatable {
  /// Transfers, and questions to LocalDNS.
  public var transfers: UInt64 = 0
  /// Answers that came.
  public var answers: UInt64 = 0
  /// Questions that were asked in vain.
  public var failures: UInt64 = 0
  /// Transfers that the budget forbade.
  public var overBudget: UInt64 = 0
}
