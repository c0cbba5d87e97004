// RankerReports.swift -- applies the reports of programs about addresses to cached answers.

import DNSWire
import EventLoop
import MessageCache

extension Ranker {
  /// Maximum reports in a second.
  private static let mostReports = 100

  /// Counts reports if the limit of this second allows all of them; otherwise returns false.
  package func mayTake(_ count: Int) -> Bool {
    let now = loop.now
    if now - reportsSince >= .seconds(1) { (reportsSince, reportCount) = (now, 0) }
    guard reportCount + count <= Ranker.mostReports else { return false }
    reportCount += count
    return true
  }

  /// Records a report and orders the answers again. The address must be in one of the answers; it may be hidden there.
  ///
  /// - Parameter answers: hashes of the keys of cached answers to the name.
  /// - Returns: what the report changed; nil if no answer has the address, so that the report was not recorded.
  package func take(_ report: AddressReport, answers: [UInt64]) -> BadAddressOutcome? {
    loop.assertCurrent()
    let octets = report.address.octets
    let isIPv6 = report.address.isIPv6
    let found = answers.compactMap { hash in run(of: hash, isIPv6: isIPv6).map { (hash: hash, run: $0) } }
      .filter { $0.run.addresses.contains(octets) }
    guard !found.isEmpty else {
      rounds.counters.unknownReports += 1
      return nil
    }
    switch report.result {
    case .works: rounds.counters.goodReports += 1
    case .failed, .bad: rounds.counters.badReports += 1
    }
    _ = reports.record(report, now: loop.now.nanoseconds)
    if reports.isBad(report.address, of: report.name, now: loop.now.nanoseconds) {
      if reported.count > 2 * AddressReports.capacity { trimReported() }
      reported[report.name, default: []].formUnion(found.map(\.hash))
    }
    var outcome = BadAddressOutcome()
    for (hash, run) in found {
      let isMoved = rearrange(hash, report.name, isIPv6: isIPv6)
      if order(of: run.addresses, report.name, band: band(of: hash, run)).isAllBad {
        outcome.alone += 1
      } else if isMoved {
        outcome.moved += 1
      } else {
        outcome.already += 1
      }
    }
    armReports()
    return outcome
  }

  private func trimReported() {
    let names = reports.namesWithBad
    reported = reported.filter { names.contains($0.key) }
  }

  /// Sets the timer that orders answers again when an address stops being last.
  private func armReports() {
    reportTimer.cancel()
    let now = loop.now.nanoseconds
    guard let end = reports.nextEnd(now: now) else { return }
    reportTimer.set(after: .nanoseconds(max(0, end - now)), on: loop, for: self) { $0.reportsHaveEnded() }
  }

  private func reportsHaveEnded() {
    for name in reports.takeEnded(now: loop.now.nanoseconds) {
      for hash in reported[name] ?? [] {
        rearrange(hash, name, isIPv6: false)
        rearrange(hash, name, isIPv6: true)
      }
    }
    trimReported()
    armReports()
  }
}

/// The effect of a report of a bad address.
package struct BadAddressOutcome: Sendable, Equatable {
  /// Answers in which the address now comes last.
  package var moved: Int
  /// Answers in which it already came last.
  package var already: Int
  /// Answers that have no other address, or none that works: the address stays where it is.
  package var alone: Int
  /// Whether `ranking.reports` is false, or there is no cache, so that nothing was done.
  package var isOff: Bool

  package init(moved: Int = 0, already: Int = 0, alone: Int = 0, isOff: Bool = false) {
    (self.moved, self.already, self.alone, self.isOff) = (moved, already, alone, isOff)
  }
}
