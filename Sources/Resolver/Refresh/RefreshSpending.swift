// RefreshSpending.swift -- the budgets of refreshing: beyond a restart, over a reload, and with a word when one is spent.
//
// Resolver's loop only.

import DNSWire
import EventLoop
import FairShares
import Refresh
import Upstreams

/// How much refreshing may cost.
struct RefreshLimits: Equatable {
  /// Billing units in any minute and in any day, of providers that bill.
  var unitsPerMinute: Int
  var unitsPerDay: Int
  /// Transfers in any minute to whoever bills nothing; there is no limit for a day.
  var transfersPerMinute: Int
}

/// What refreshing may still cost.
final class RefreshSpending {
  /// A question for which something is to be spent.
  struct Item {
    var name: DomainName
    /// Whether it is of `refresh.keep`.
    var isKept: Bool
  }

  private struct Account {
    var budget: RefreshBudget
    var shares = RefreshShares<DomainKey>()
  }

  private let loop: any Loop
  private let ledger: RefreshLedger?
  private let note: (String) -> Void
  private var limits: RefreshLimits
  private var billed: Account
  private var free: Account
  private var nextNote = BootInstant(nanoseconds: .min)

  /// How often a person is told that nothing is left: that may go on for hours.
  private static let calm = Duration.seconds(60)
  /// How often a kept question may be due in a minute, where its TTL is the least that is refreshed ahead.
  private static let mostPerMinute = 8
  /// The dearest answer (`Billing`).
  private static let dearest = 8

  /// - Parameters:
  ///   - ledger: keeps what is spent beyond the program's life.
  ///   - note: told in one line that nothing is left.
  init(_ limits: RefreshLimits, on loop: any Loop, ledger: RefreshLedger?, note: @escaping (String) -> Void) {
    self.loop = loop
    self.ledger = ledger
    self.note = note
    self.limits = limits
    billed = Account(budget: RefreshBudget(perMinute: limits.unitsPerMinute, perDay: limits.unitsPerDay))
    free = Account(budget: RefreshSpending.freeBudget(limits))
    // No limit of a day is kept where nobody bills: what was spent before says nothing.
    ledger?.restore(&billed.budget)
    ledger?.keep { [unowned self] in billed.budget.spentOfDay(now: self.loop.now.nanoseconds) }
  }

  /// Nothing at all is refreshed where a day has no units.
  private static func freeBudget(_ limits: RefreshLimits) -> RefreshBudget {
    RefreshBudget(perMinute: limits.unitsPerDay == 0 ? 0 : limits.transfersPerMinute, perDay: nil)
  }

  /// Changes the limits; what was spent today stays spent.
  func use(_ limits: RefreshLimits) {
    guard self.limits != limits else { return }
    self.limits = limits
    let now = loop.now.nanoseconds
    var next = RefreshBudget(perMinute: limits.unitsPerMinute, perDay: limits.unitsPerDay)
    for spent in billed.budget.spentOfDay(now: now) { next.restore(spent, now: now) }
    next.needOfKept = billed.budget.needOfKept
    billed.budget = next
    var other = RefreshSpending.freeBudget(limits)
    other.needOfKept = free.budget.needOfKept
    free.budget = other
  }

  /// How many questions are kept fresh always: something is reserved for them.
  func reserve(forKept questions: Int) {
    free.budget.needOfKept = questions * RefreshSpending.mostPerMinute
    billed.budget.needOfKept = questions * RefreshSpending.mostPerMinute * RefreshSpending.dearest
  }

  /// How many names of two families each a transfer may carry, so that it can be paid at all.
  func mostNames(_ price: RefreshPrice) -> Int {
    guard price.isBilled, price.perAnswer > 0 else { return .max }
    return max(1, (billed.budget.limitInUse - price.perTransfer) / (2 * price.perAnswer))
  }

  /// Spends what a transfer costs that asks those questions, or as many of them as there is enough for.
  ///
  /// What is kept comes first. No domain has more than its share of the rest, as long as others want theirs.
  ///
  /// - Returns: for each question whether it may be asked.
  func take(_ items: [Item], _ price: RefreshPrice) -> [Bool] {
    var taken = [Bool](repeating: false, count: items.count)
    var isBegun = false
    for (index, item) in items.enumerated().sorted(by: { $0.1.isKept && !$1.1.isKept }) {
      let units = price.perAnswer + (isBegun ? 0 : price.perTransfer)
      taken[index] = take(item, units, isBilled: price.isBilled)
      isBegun = isBegun || taken[index]
    }
    guard taken.contains(false) else { return taken }
    if loop.now >= nextNote {
      nextNote = loop.now + RefreshSpending.calm
      note("the budget of [refresh] is spent: names in use expire, and the next client that asks waits for them")
    }
    return taken
  }

  private func take(_ item: Item, _ units: Int, isBilled: Bool) -> Bool {
    let now = loop.now.nanoseconds
    let isTaken =
      isBilled
      ? RefreshSpending.take(item, units, of: &billed, now: now)
      : RefreshSpending.take(item, units, of: &free, now: now)
    if isTaken, isBilled, units > 0 { ledger?.didSpend() }
    return isTaken
  }

  private static func take(_ item: Item, _ units: Int, of account: inout Account, now: Int64) -> Bool {
    guard units > 0 else { return true }
    guard !item.isKept else { return account.budget.take(units, .kept, now: now) }
    let domain = DomainKey(of: item.name)
    let left = account.budget.room(.inUse, now: now)
    guard account.shares.admits(domain, units, limit: account.budget.limitInUse, left: left, now: now),
      account.budget.take(units, .inUse, now: now)
    else { return false }
    account.shares.spend(domain, units, now: now)
    return true
  }
}
