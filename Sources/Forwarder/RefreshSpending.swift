// RefreshSpending.swift -- the budget of refreshing: beyond a restart, over a reload, and with a word when it is spent.
//
// Resolver's loop only.

import EventLoop
import Refresh

/// What refreshing may still cost.
final class RefreshSpending {
  private let loop: any Loop
  private let ledger: RefreshLedger?
  private let note: (String) -> Void
  private var limits: (perMinute: Int, perDay: Int)
  private var budget: RefreshBudget
  private var nextNote = BootInstant(nanoseconds: .min)

  /// How often a person is told that nothing is left: that may go on for hours.
  private static let calm = Duration.seconds(600)

  /// - Parameters:
  ///   - ledger: keeps what is spent beyond the program's life.
  ///   - note: told in one line that nothing is left.
  init(
    perMinute: Int, perDay: Int, on loop: any Loop, ledger: RefreshLedger?, note: @escaping (String) -> Void
  ) {
    self.loop = loop
    self.ledger = ledger
    self.note = note
    limits = (perMinute, perDay)
    budget = RefreshBudget(perMinute: perMinute, perDay: perDay)
    ledger?.restore(&budget)
    ledger?.keep { [unowned self] in budget.spentOfDay(now: self.loop.now.nanoseconds) }
  }

  /// Goes by other limits from now on; what was spent today stays spent.
  func use(perMinute: Int, perDay: Int) {
    guard limits != (perMinute, perDay) else { return }
    limits = (perMinute, perDay)
    let now = loop.now.nanoseconds
    var next = RefreshBudget(perMinute: perMinute, perDay: perDay)
    for spent in budget.spentOfDay(now: now) { next.restore(spent.transfers, age: spent.age, now: now) }
    budget = next
  }

  /// Spends a transfer; false, and nothing is spent, where none is left.
  func take() -> Bool {
    guard budget.take(now: loop.now.nanoseconds) else {
      if loop.now >= nextNote {
        nextNote = loop.now + RefreshSpending.calm
        note("the budget of [refresh] is spent: names in use expire, and the next client that asks waits for them")
      }
      return false
    }
    ledger?.didSpend()
    return true
  }
}
