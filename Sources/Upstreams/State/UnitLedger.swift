// UnitLedger.swift -- stores the units each provider used today, so that a restart does not reset a daily budget.
//
// Resolver's loop only. The file has one line of text per provider: its name, the day in days since 1970, the units.

import EventLoop
import Files
import Persistence

/// Today's billing units per provider, in the state directory.
package final class UnitLedger {
  private let budgets = Budgets()
  private let writer: StateWriter

  private final class Budgets {
    var ofProvider: [String: () -> UnitBudget?] = [:]
    /// The units of providers that are not in use: not configured or not started yet.
    var saved: [String: (day: Int64, units: Int)] = [:]
  }

  private static let delay = Duration.seconds(10)
  private static let largest = 64 * 1024
  private static let firstLine = "httpdnsd units 1"

  /// Reads the stored units. Unreadable lines are skipped.
  init(_ file: StateFile, on loop: any Loop) {
    budgets.saved = UnitLedger.parse(file.read(limit: UnitLedger.largest) ?? [])
    writer = StateWriter(file, on: loop, after: UnitLedger.delay) { [budgets] in UnitLedger.content(budgets) }
  }

  /// Returns a budget for the provider, including the units it has spent already.
  func budget(of provider: String, perDay: Int) -> UnitBudget {
    if let known = budgets.ofProvider[provider]?() {
      return UnitBudget(perDay: perDay, day: known.day, spent: known.spent)
    }
    guard let entry = budgets.saved[provider] else { return UnitBudget(perDay: perDay) }
    return UnitBudget(perDay: perDay, day: entry.day, spent: entry.units)
  }

  /// Stores the budget of this provider with every save from now on. `budget` is called on the loop.
  func add(_ provider: String, _ budget: @escaping () -> UnitBudget?) {
    budgets.ofProvider[provider] = budget
    budgets.saved[provider] = nil
  }

  /// Stores the units of a provider that a reload has removed; it may return on the same day.
  func leave(_ provider: String, _ budget: UnitBudget) {
    budgets.ofProvider[provider] = nil
    budgets.saved[provider] = (budget.day, budget.spent)
    writer.changed()
  }

  /// Stores what a removed provider has paid for transfers that were in flight.
  func hasLeft(_ provider: String, _ budget: UnitBudget) {
    if budgets.ofProvider[provider] == nil { leave(provider, budget) }
  }

  /// Schedules a save after units were spent or taken over.
  func didSpend() { writer.changed() }

  /// Writes unsaved changes before it returns.
  package func close() { writer.close() }

  private static func content(_ budgets: Budgets) -> [UInt8] {
    var text = UnitLedger.firstLine + "\n"
    var entries = budgets.saved
    for (name, budget) in budgets.ofProvider {
      if let now = budget() { entries[name] = (now.day, now.spent) }
    }
    for (name, entry) in entries.sorted(by: { $0.key < $1.key }) { text += "\(name) \(entry.day) \(entry.units)\n" }
    return Array(text.utf8)
  }

  private static func parse(_ octets: [UInt8]) -> [String: (day: Int64, units: Int)] {
    let lines = String(decoding: octets, as: UTF8.self).split(separator: "\n")
    guard lines.first.map(String.init) == firstLine else { return [:] }
    var entries: [String: (day: Int64, units: Int)] = [:]
    for line in lines.dropFirst() {
      let fields = line.split(separator: " ")
      guard fields.count == 3, let day = fields[1].number(in: NumberRange.days),
        let units = fields[2].number(in: NumberRange.units)
      else { continue }
      entries[String(fields[0])] = (day, units)
    }
    return entries
  }
}
