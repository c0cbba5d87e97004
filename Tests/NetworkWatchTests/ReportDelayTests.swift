// ReportDelayTests.swift -- bursts of events on a clock of the test's own.

import EventLoop
import Testing

@testable import NetworkWatch

@Suite struct `A burst of events` {
  /// When events at these times, in milliseconds, are reported with a check every millisecond.
  private func reports(_ events: some Collection<Int>, until end: Int) -> [Int] {
    var delay = ReportDelay()
    var reports: [Int] = []
    let events = Set(events)
    for time in 0...end {
      let now = BootInstant(nanoseconds: Int64(time) * 1_000_000)
      if events.contains(time) { delay.note(at: now) }
      if delay.take(at: now) { reports.append(time) }
    }
    #expect(delay.due == nil)
    return reports
  }

  @Test func `a burst is reported once, half a second after its last event`() {
    #expect(reports([100], until: 10_000) == [600])
    #expect(reports([100, 150, 400, 800], until: 10_000) == [1_300])
    #expect(reports([100, 700], until: 10_000) == [600, 1_200])
  }

  @Test func `an endless burst is reported every five seconds`() {
    let flaps = stride(from: 0, through: 60_000, by: 100).map { $0 }
    let reports = reports(flaps, until: 70_000)
    #expect(reports.first == 5_000 && reports.last == 60_500)
    for (earlier, later) in zip(reports, reports.dropFirst()) { #expect(later - earlier <= 5_100) }
    #expect(reports.count == 13 || reports.count == 12)
  }
}
