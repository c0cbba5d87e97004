// RefreshLedger.swift -- saves the cost of the last day's refreshes, so that a restart does not reset
// `refresh.budget_per_day`.
//
// Resolver's loop only. The file in the state directory has a line of text for every five minutes: their beginning in
// seconds since 1970, the units, and those of them for names of `refresh.keep`. Version 0.1.0 wrote transfers instead
// of units, and no third number.

import EventLoop
import Files
import Persistence

/// The units spent in the last day, on disk.
package final class RefreshLedger {
  private let loop: any Loop
  private let file: StateFile
  private let budget = Shared()
  private let writer: StateWriter

  private final class Shared { var spent: () -> [RefreshBudget.Spent] = { [] } }

  /// The minimum time between two writes to the disk, which go on all day.
  private static let delay = Duration.seconds(300)
  private static let largest = 64 * 1024
  private static let firstLine = "httpdnsd refreshes 1"

  /// Creates a ledger that writes to `file` at most every five minutes; `restore` reads it. Call it on the loop, or before
  /// the loop runs.
  package init(_ file: StateFile, on loop: any Loop) {
    self.loop = loop
    self.file = file
    writer = StateWriter(file, on: loop, after: RefreshLedger.delay) { [budget, loop] in
      RefreshLedger.text(budget.spent(), wallTime: loop.wallTime)
    }
  }

  /// Counts in `budget` what was spent before the start. Skips lines that it cannot read.
  func restore(_ budget: inout RefreshBudget) {
    loop.assertCurrent()
    let lines = String(decoding: file.read(limit: RefreshLedger.largest) ?? [], as: UTF8.self).split(separator: "\n")
    guard lines.first.map(String.init) == RefreshLedger.firstLine else { return }
    for line in lines.dropFirst() {
      let fields = line.split(separator: " ")
      guard 2...3 ~= fields.count, let time = fields[0].number(in: NumberRange.seconds),
        let units = fields[1].number(in: NumberRange.units), units > 0,
        let keepList = fields.count == 3 ? fields[2].number(in: 0...units) : 0,
        time > loop.wallTime - RefreshLedger.remembered
      else { continue }
      // After the clock has been set back, a line may lie in the future: its age is 0.
      let age = max(loop.wallTime - time, 0) * 1_000_000_000
      budget.restore(RefreshBudget.Spent(units, keepList: keepList, age: age), now: loop.now.nanoseconds)
    }
  }

  /// Seconds for which a unit may count: a day, and the five minutes of its line.
  private static let remembered: Int64 = 86_700

  /// Sets the budget that is saved from now on.
  func save(_ spent: @escaping () -> [RefreshBudget.Spent]) {
    loop.assertCurrent()
    budget.spent = spent
  }

  /// Schedules a write, since units were spent.
  func didSpend() { writer.changed() }

  /// Writes unsaved changes before it returns.
  package func close() { writer.close() }

  private static func text(_ spent: [RefreshBudget.Spent], wallTime: Int64) -> [UInt8] {
    let lines = spent.map { "\(wallTime - $0.age / 1_000_000_000) \($0.units) \($0.keepListUnits)" }
    return Array(([firstLine] + lines).joined(separator: "\n").utf8) + [0x0A]
  }
}
