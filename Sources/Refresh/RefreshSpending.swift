// RefreshSpending.swift -- pays for refreshes from budgets that survive reloads, and logs when one is used up.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import FairShares

/// The budgets for refreshing: one for providers that bill, one for other upstreams.
final class RefreshSpending {
  /// A question to pay for.
  struct Item {
    var name: DomainName
    /// Whether it is in `refresh.keep`.
    var isOnKeepList: Bool
  }

  private struct Account {
    var budget: RefreshBudget
    var shares = RefreshShares<DomainKey>()

    mutating func take(_ item: Item, units: Int, now: Int64) -> Bool {
      guard units > 0 else { return true }
      guard !item.isOnKeepList else { return budget.take(units, .keepList, now: now) }
      let domain = DomainKey(of: item.name)
      let left = budget.room(.inUse, now: now)
      guard shares.admits(domain, units, limit: budget.limitInUse, left: left, now: now),
        budget.take(units, .inUse, now: now)
      else { return false }
      shares.spend(domain, units, now: now)
      return true
    }
  }

  private let loop: any Loop
  private let ledger: RefreshLedger?
  private let note: (String) -> Void
  private var limits: Configuration.Refresh
  private var billed: Account
  private var free: Account
  private var nextNote = BootInstant(nanoseconds: .min)

  /// The minimum time between two messages that a budget is used up, which may last for hours.
  private static let calm = Duration.seconds(60)
  /// How often per minute a question of `refresh.keep` falls due if its TTL is the shortest that is refreshed early.
  private static let mostPerMinute = 8
  /// The units of the most expensive answer (`Billing`).
  private static let dearest = 8

  /// - Parameters:
  ///   - ledger: saves what is spent across restarts.
  ///   - note: logs one line when a budget is used up.
  init(_ limits: Configuration.Refresh, on loop: any Loop, ledger: RefreshLedger?, note: @escaping (String) -> Void) {
    self.loop = loop
    self.ledger = ledger
    self.note = note
    self.limits = limits
    (billed, free) = (Account(budget: limits.billedBudget), Account(budget: limits.freeBudget))
    // Transfers that are not billed have no limit per day, so earlier ones do not count.
    ledger?.restore(&billed.budget)
    ledger?.save { [weak self] in self.map { $0.billed.budget.spentOfDay(now: $0.loop.now.nanoseconds) } ?? [] }
  }

  /// Changes the limits. Units spent in the last day still count. What the keep list needs has to be reserved again.
  func use(_ limits: Configuration.Refresh) {
    loop.assertCurrent()
    let isSame =
      self.limits.budgetPerMinute == limits.budgetPerMinute && self.limits.budgetPerDay == limits.budgetPerDay
      && self.limits.freePerMinute == limits.freePerMinute
    guard !isSame else { return }
    self.limits = limits
    let now = loop.now.nanoseconds
    let spent = billed.budget.spentOfDay(now: now)
    (billed.budget, free.budget) = (limits.billedBudget, limits.freeBudget)
    for spent in spent { billed.budget.restore(spent, now: now) }
  }

  /// Reserves a part of both budgets for questions of `refresh.keep`.
  ///
  /// - Parameter questions: how many there are.
  func reserve(forKeepList questions: Int) {
    free.budget.needOfKeepList = questions * RefreshSpending.mostPerMinute
    billed.budget.needOfKeepList = questions * RefreshSpending.mostPerMinute * RefreshSpending.dearest
  }

  /// The maximum number of names, each in both families, in a transfer that the budget can pay for; at least 1.
  func mostNames(_ price: RefreshPrice) -> Int {
    loop.assertCurrent()
    let perName = price.perName + 2 * price.perAnswer
    guard price.isBilled, perName > 0 else { return .max }
    return max(1, (billed.budget.limitInUse - price.perTransfer) / perName)
  }

  /// Takes the cost of a transfer with these questions, or with as many of them as the budget allows.
  ///
  /// Questions of `refresh.keep` come first. A domain gets no more than its share of the rest while others want theirs.
  ///
  /// - Returns: for each question, whether it may be asked.
  func take(_ items: [Item], _ price: RefreshPrice) -> [Bool] {
    loop.assertCurrent()
    var taken = [Bool](repeating: false, count: items.count)
    var isBegun = false
    var names: Set<DomainName> = []
    for (index, item) in items.enumerated().sorted(by: { $0.1.isOnKeepList && !$1.1.isOnKeepList }) {
      let isNewName = price.perName > 0 && !names.contains(item.name)
      let units = price.perAnswer + (isBegun ? 0 : price.perTransfer) + (isNewName ? price.perName : 0)
      let now = loop.now.nanoseconds
      taken[index] =
        price.isBilled ? billed.take(item, units: units, now: now) : free.take(item, units: units, now: now)
      if taken[index], price.isBilled, units > 0 { ledger?.didSpend() }
      isBegun = isBegun || taken[index]
      if isNewName, taken[index] { names.insert(item.name) }
    }
    guard taken.contains(false) else { return taken }
    if loop.now >= nextNote {
      nextNote = loop.now + RefreshSpending.calm
      note(
        "refresh budget used up (refresh.budget_per_minute, budget_per_day): hot names expire, and the next client that asks "
          + "for one waits")
    }
    return taken
  }
}

extension Configuration.Refresh {
  fileprivate var billedBudget: RefreshBudget { RefreshBudget(perMinute: budgetPerMinute, perDay: budgetPerDay) }

  /// The budget for upstreams that do not bill. With a limit of 0 units per day, nothing at all is refreshed.
  fileprivate var freeBudget: RefreshBudget {
    RefreshBudget(perMinute: budgetPerDay == 0 ? 0 : freePerMinute, perDay: nil)
  }
}
