// ProviderLimits.swift -- what a provider may still be sent: requests per second, and units per day.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import Logging

/// Adds up the units of an account over all daemons of a fleet. Resolver's loop only.
package protocol UnitSharing: AnyObject {
  /// Notes what this daemon has spent on a day, in days since 1970.
  func spent(own: Int, day: Int64)
  /// The units that the other daemons have spent on that day, as far as is known.
  func othersUnits(own: Int, day: Int64) -> Int
}

/// The limits of a provider, and what is spent of them.
final class ProviderLimits {
  private let settings: Configuration.Provider
  private let loop: any Loop
  private let ledger: UnitLedger?
  private let counters: SharedProviderCounters
  private let note: ProviderNote
  private var rate: RequestLimit
  private(set) var budget: UnitBudget
  /// The maximum cost in units of all transfers in flight.
  private(set) var unitsInFlight = 0
  /// Adds up the units of a fleet; nil if the limit is this daemon's own.
  private var sharing: (any UnitSharing)?
  /// The last milestone of the fleet's units that was logged, and its day.
  private var milestone: (day: Int64, percent: Int) = (0, 0)
  /// Whether the log has said that the day's units are used up.
  private var isLimitLogged = false
  private(set) var isRetired = false
  /// Those of the provider that has the name since a reload. They pay for transfers that were in flight.
  private var heir: ProviderLimits?

  init(
    _ settings: Configuration.Provider, _ ledger: UnitLedger?, _ counters: SharedProviderCounters, on loop: any Loop,
    note: @escaping ProviderNote
  ) {
    self.settings = settings
    self.ledger = ledger
    self.counters = counters
    self.loop = loop
    self.note = note
    rate = RequestLimit(perSecond: settings.requestsPerSecond)
    budget = ledger?.budget(of: settings.name, perDay: settings.unitsPerDay) ?? UnitBudget(perDay: settings.unitsPerDay)
  }

  /// The ledger stores what is spent from now on.
  func start() { ledger?.add(settings.name) { [weak self] in self?.budget } }

  // MARK: What may be sent

  /// Whether the day has units left besides those of transfers in flight.
  var hasUnits: Bool {
    if let heir { return heir.hasUnits }
    return budget.isOpen(unixTime: loop.wallTime, now: loop.now.nanoseconds, reserve: unitsInFlight + othersUnits)
  }

  /// Whether a request may be sent for background work, which leaves half of the second to clients.
  var hasSpare: Bool { rate.hasSpare(now: loop.now.nanoseconds) }

  /// Why no request is sent on this day; nil if there are units left.
  var refusal: UpstreamFailure? {
    guard !hasUnits else { return nil }
    var refusal = UpstreamFailure(
      .other, "units_per_day (\(settings.unitsPerDay)) used up\(owner); resets at 00:00 UTC", .notAsked)
    refusal.isLogged = isLimitLogged
    return refusal
  }

  /// Takes a request's share of the second; returns why it is not sent.
  func take() -> UpstreamFailure? {
    if let refusal { return refusal }
    guard !rate.take(now: loop.now.nanoseconds) else { return nil }
    return UpstreamFailure(.other, "more than requests_per_second (\(settings.requestsPerSecond))", .limit)
  }

  /// Whether a request may be sent once more; takes its share of the second. After a reload the heir decides.
  func mayRepeat() -> Bool { heir?.mayRepeat() ?? (take() == nil) }

  /// Why new names are not asked for: the last units of the day are reserved for names in use. Nil if new names may be asked
  /// for. Also nil if no units are left at all: `refusal` covers that.
  func refusalOfNewNames() -> UpstreamFailure? {
    let reserve = Int(Double(settings.unitsPerDay) * settings.unitsReserve)
    guard settings.unitsPerDay > 0, reserve > 0 else { return nil }
    let (unixTime, now, others) = (loop.wallTime, loop.now.nanoseconds, othersUnits)
    guard budget.isOpen(unixTime: unixTime, now: now, reserve: others),
      !budget.isOpen(unixTime: unixTime, now: now, reserve: others + reserve)
    else { return nil }
    return UpstreamFailure(
      .other,
      "units_per_day (\(settings.unitsPerDay)) used up except units_reserve (\(reserve)), which is for names in use",
      .limit)
  }

  // MARK: What is spent

  /// Reserves units for a transfer in flight.
  func reserve(_ units: Int) { payer.unitsInFlight += units }

  /// The end of a transfer for which units were reserved.
  func release(_ units: Int) { payer.unitsInFlight -= units }

  /// Counts units that a transfer has cost.
  func pay(_ units: Int) {
    if let heir { return heir.pay(units) }
    counters.values.units += units
    guard units > 0 else { return }
    let own = budget.spend(units, unixTime: loop.wallTime, now: loop.now.nanoseconds)
    sharing?.spent(own: budget.spent, day: budget.day)
    if let milestone = sharing == nil ? own : newMilestone() {
      isLimitLogged = milestone == 100
      let rest = milestone < 100 ? "" : "; the provider is not asked until 00:00 UTC"
      note(
        .warning,
        "provider \(settings.name): \(milestone) % of units_per_day (\(settings.unitsPerDay)) used\(owner)\(rest)")
    }
    isRetired ? ledger?.hasLeft(settings.name, budget) : ledger?.didSpend()
  }

  /// Adds up the units with those of the other daemons of a fleet; nil for this daemon's alone.
  func share(_ sharing: (any UnitSharing)?) {
    self.sharing = sharing
    guard let sharing, budget.spent > 0 else { return }
    sharing.spent(own: budget.spent, day: budget.day)
  }

  /// The heir takes over the day's units, and pays for transfers in flight; nil if no provider has the name any more.
  func retire(for heir: ProviderLimits?) {
    isRetired = true
    guard let heir else {
      ledger?.leave(settings.name, budget)
      return
    }
    self.heir = heir
    heir.takeOver(budget)
    heir.unitsInFlight += unitsInFlight
    unitsInFlight = 0
  }

  /// Describes the day.
  func describe(_ report: inout ProviderReport) {
    var today = budget
    let isOpen = today.isOpen(unixTime: loop.wallTime, now: loop.now.nanoseconds)
    report.unitsToday = today.spent
    report.unitsPerDay = settings.unitsPerDay
    report.fleetUnits = sharing.map { today.spent + $0.othersUnits(own: today.spent, day: today.day) }
    if !isOpen { report.state = .noUnits(until: (today.day + 1) * 86_400) }
  }

  /// Who pays: these limits, or those of the latest heir.
  private var payer: ProviderLimits { heir?.payer ?? self }

  private func takeOver(_ budget: UnitBudget) {
    self.budget = UnitBudget(perDay: settings.unitsPerDay, day: budget.day, spent: budget.spent)
    // The predecessor had no ledger if it had no limit.
    if budget.spent > 0 { ledger?.didSpend() }
  }

  /// The units of the day that the other daemons of the fleet have spent; 0 without a limit.
  private var othersUnits: Int {
    guard settings.unitsPerDay > 0, let sharing else { return 0 }
    // The day may have turned.
    _ = budget.isOpen(unixTime: loop.wallTime, now: loop.now.nanoseconds)
    return sharing.othersUnits(own: budget.spent, day: budget.day)
  }

  /// Whose limit it is, for messages.
  private var owner: String { sharing == nil ? "" : " for the fleet" }

  /// The highest milestone that the fleet's units have reached and that was not logged on this day; or nil.
  private func newMilestone() -> Int? {
    guard settings.unitsPerDay > 0 else { return nil }
    let total = budget.spent + othersUnits
    if budget.day != milestone.day { milestone = (budget.day, 0) }
    let reached = UnitBudget.milestones.last { total >= UnitBudget.threshold($0, of: settings.unitsPerDay) } ?? 0
    guard reached > milestone.percent else { return nil }
    milestone.percent = reached
    return reached
  }
}
