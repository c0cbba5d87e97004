// RefreshLedger.swift -- what refreshing has cost in the last day, kept in the state directory: a restart does not open
// `refresh.budget_per_day` again.
//
// Resolver's loop only. A line of text for each five minutes: when they began in seconds since 1970, the units, and those
// of them that were for names of `refresh.keep`. Version 0.1.0 wrote transfers, and no third number.

import EventLoop
import Persistence
import Refresh
import Upstreams

/// The units of the last day, on disk.
package final class RefreshLedger {
  private let loop: any Loop
  private let file: StateFile
  private let budget = Shared()
  private let writer: StateWriter

  private final class Shared { var spent: () -> [RefreshBudget.Spent] = { [] } }

  /// Refreshing goes on all day: a disk is not to be written to more often for that.
  private static let delay = Duration.seconds(300)
  private static let largest = 64 * 1024
  private static let firstLine = "httpdnsd refreshes 1"

  package init(_ file: StateFile, on loop: any Loop) {
    self.loop = loop
    self.file = file
    writer = StateWriter(file, on: loop, after: RefreshLedger.delay) { [budget, loop] in
      RefreshLedger.text(budget.spent(), wallTime: loop.wallTime)
    }
  }

  /// Counts in `budget` what was spent before. Lines that cannot be read are skipped.
  func restore(_ budget: inout RefreshBudget) {
    let lines = String(decoding: file.read(limit: RefreshLedger.largest) ?? [], as: UTF8.self).split(separator: "\n")
    guard lines.first.map(String.init) == RefreshLedger.firstLine else { return }
    for line in lines.dropFirst() {
      let fields = line.split(separator: " ")
      guard 2...3 ~= fields.count, let time = Int64(fields[0]), let units = Int(fields[1]), time >= 0, units > 0,
        let kept = fields.count == 3 ? Int(fields[2]) : 0, 0...units ~= kept,
        time > loop.wallTime - RefreshLedger.remembered
      else { continue }
      // A clock that has gone back does not make anything younger than now.
      let age = max(loop.wallTime - time, 0) * 1_000_000_000
      budget.restore(RefreshBudget.Spent(units, kept: kept, age: age), now: loop.now.nanoseconds)
    }
  }

  /// Seconds for which a unit may count: a day and the five minutes that it was counted in.
  private static let remembered: Int64 = 86_700

  /// Keeps a budget from now on.
  func keep(_ spent: @escaping () -> [RefreshBudget.Spent]) { budget.spent = spent }

  /// Something was spent.
  func didSpend() { writer.changed() }

  /// Writes what has not been written, before it returns.
  package func close() { writer.close() }

  private static func text(_ spent: [RefreshBudget.Spent], wallTime: Int64) -> [UInt8] {
    let lines = spent.map { "\(wallTime - $0.age / 1_000_000_000) \($0.units) \($0.keptUnits)" }
    return Array(([firstLine] + lines).joined(separator: "\n").utf8) + [0x0A]
  }
}
