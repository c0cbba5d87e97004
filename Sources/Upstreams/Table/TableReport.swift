// TableReport.swift -- the state of a self-built table, in human-readable values.

import EventLoop
import HTTPDNS

extension TableProvider {
  /// The provider is up while it has a table that is not switched off, however old.
  var report: ProviderReport {
    loop.assertCurrent()
    var report = ProviderReport(name: name)
    report.server = origin.isEmpty ? nil : origin
    report.counters = counters.values
    switch table {
    case nil:
      report.state = .unreachable(since: nil, problem ?? TableAbsence.notLoaded.text)
      report.advice = remedy
      report.nextAttempt = timer.deadline.flatMap { $0 > loop.now ? $0 - loop.now : nil }
    case .some(let table) where !table.isEnabled: report.state = .unreachable(since: nil, TableAbsence.switchedOff.text)
    case .some: report.remark = problem.map { "keeping the old table: \($0)" }
    }
    return report
  }
}
