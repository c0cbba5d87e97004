// UnitLedger.swift -- what each provider has cost today, kept in the state directory: a restart does not open a budget anew.
//
// Resolver's loop only. A line of text for each provider: its name, the day in days since 1970, the units.

import EventLoop
import Persistence
import ProviderPool

/// Today's billing units by provider, on disk.
final class UnitLedger {
  private let file: StateFile
  private let loop: any Loop
  private var budgets: [String: () -> UnitBudget?] = [:]
  private var kept: [String: (day: Int64, units: Int)]
  private var timer: LoopTimer?

  /// How long after the first unit that was not saved the file is written: `kill -9` loses no more than that.
  private static let delay = Duration.seconds(10)
  private static let largest = 64 * 1024
  private static let firstLine = "httpdnsd units 1"

  /// Reads what was kept. Lines that cannot be read are skipped.
  init(_ file: StateFile, on loop: any Loop) {
    self.file = file
    self.loop = loop
    kept = UnitLedger.parse(file.read(limit: UnitLedger.largest) ?? [])
  }

  /// The budget of a provider with what was spent before.
  func budget(of provider: String, perDay: Int) -> UnitBudget {
    if let known = budgets[provider]?() { return UnitBudget(perDay: perDay, day: known.day, spent: known.spent) }
    guard let entry = kept[provider] else { return UnitBudget(perDay: perDay) }
    return UnitBudget(perDay: perDay, day: entry.day, spent: entry.units)
  }

  /// Keeps a provider's budget from now on.
  func add(_ provider: String, _ budget: @escaping () -> UnitBudget?) {
    budgets[provider] = budget
    kept[provider] = nil
  }

  /// The provider is no longer asked, but may be again today.
  func leave(_ provider: String, _ budget: UnitBudget) {
    budgets[provider] = nil
    kept[provider] = (budget.day, budget.spent)
  }

  /// Something was spent.
  func didSpend() {
    guard timer == nil else { return }
    timer = loop.schedule(after: UnitLedger.delay) { [weak self] in
      guard let self else { return }
      timer = nil
      file.save(content)
    }
  }

  /// Writes what has not been written, before it returns.
  func close() {
    guard let timer else { return }
    timer.cancel()
    self.timer = nil
    file.saveNow(content)
  }

  private var content: [UInt8] {
    var text = UnitLedger.firstLine + "\n"
    var entries = kept
    for (name, budget) in budgets {
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
      guard fields.count == 3, let day = Int64(fields[1]), let units = Int(fields[2]), day >= 0, units >= 0 else {
        continue
      }
      entries[String(fields[0])] = (day, units)
    }
    return entries
  }
}
