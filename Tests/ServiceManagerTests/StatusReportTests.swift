// StatusReportTests.swift -- the status line: sent on changes, at a limited rate, without wake-ups.

import EventLoop
import ServiceManager
import TestSupport
import Testing

@Suite struct `A status report` {
  private let loop = SimulatedLoop()
  private let record = Record()

  private final class Record {
    var line = "well"
    var looks = 0
    var sent: [(line: String, at: BootInstant)] = []
  }

  private func report() -> StatusReport {
    StatusReport(on: loop, pause: .seconds(5)) { [record] in
      record.looks += 1
      return record.line
    } send: { [record, loop] in
      record.sent.append(($0, loop.now))
    }
  }

  @Test func `a status report does not send its initial line`() {
    let report = report()
    #expect(report.line == "well")
    loop.advance(by: .seconds(6))
    report.loopHasTurned()
    #expect(record.sent.isEmpty)
  }

  @Test func `a status report sends a change at once if the last check is old`() {
    let report = report()
    let begin = loop.now
    loop.advance(by: .seconds(60))
    record.line = "ill"
    report.loopHasTurned()
    #expect(record.sent.map(\.line) == ["ill"])
    #expect(record.sent.map { $0.at - begin } == [.seconds(60)])
    #expect(report.line == "ill")
  }

  @Test func `a line taken with renewed is not sent again`() {
    let report = report()
    loop.advance(by: .seconds(60))
    record.line = "ill"
    #expect(report.renewed() == "ill")
    #expect(report.line == "ill")
    loop.advance(by: .seconds(60))
    report.loopHasTurned()
    #expect(record.sent.isEmpty)
  }

  @Test func `a status report sends an early change later, also if the loop stays idle`() {
    let report = report()
    loop.advance(by: .seconds(1))
    record.line = "ill"
    report.loopHasTurned()
    #expect(record.sent.isEmpty)
    loop.advance(by: .seconds(10))
    #expect(record.sent.map(\.line) == ["ill"])
  }

  @Test func `a status report checks once per pause, however often the loop turns`() {
    let report = report()
    record.looks = 0
    for turn in 0..<1_000 {
      record.line = "turn \(turn)"
      loop.advance(by: .milliseconds(20))
      report.loopHasTurned()
    }
    #expect(record.looks == 4)
    #expect(record.sent.count == 4)
  }

  @Test func `a status report does not wake an idle loop`() {
    let report = report()
    loop.advance(by: .seconds(2))
    report.loopHasTurned()
    #expect(loop.timers.count == 1)
    loop.advance(by: .seconds(3))
    // The turn of the check itself.
    report.loopHasTurned()
    #expect(loop.timers.count == 0)
  }

  @Test func `a stopped status report sends nothing`() {
    let report = report()
    loop.advance(by: .seconds(1))
    record.line = "ill"
    report.loopHasTurned()
    report.stop()
    loop.advance(by: .seconds(60))
    report.loopHasTurned()
    #expect(record.sent.isEmpty)
    #expect(loop.timers.count == 0)
  }
}
