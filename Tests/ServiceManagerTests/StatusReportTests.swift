// StatusReportTests.swift -- the line for the service manager: sent when it has changed, seldom, and without ticking.

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

  @Test func `begins with the line of the start, which is not sent again`() {
    let report = report()
    #expect(report.line == "well")
    loop.advance(by: .seconds(6))
    report.loopHasTurned()
    #expect(record.sent.isEmpty)
  }

  @Test func `sends what has changed at once where it has looked long ago`() {
    let report = report()
    let begin = loop.now
    loop.advance(by: .seconds(60))
    record.line = "ill"
    report.loopHasTurned()
    #expect(record.sent.map(\.line) == ["ill"])
    #expect(record.sent.map { $0.at - begin } == [.seconds(60)])
    #expect(report.line == "ill")
  }

  @Test func `gives the line as it is now to who sends something else with it, and does not send it again`() {
    let report = report()
    loop.advance(by: .seconds(60))
    record.line = "ill"
    #expect(report.renewed() == "ill")
    #expect(report.line == "ill")
    loop.advance(by: .seconds(60))
    report.loopHasTurned()
    #expect(record.sent.isEmpty)
  }

  @Test func `sends what has changed a moment ago later, also when the loop turns no more`() {
    let report = report()
    loop.advance(by: .seconds(1))
    record.line = "ill"
    report.loopHasTurned()
    #expect(record.sent.isEmpty)
    loop.advance(by: .seconds(10))
    #expect(record.sent.map(\.line) == ["ill"])
  }

  @Test func `looks once in its pause, however often the loop turns`() {
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

  @Test func `leaves a loop alone that has nothing to do`() {
    let report = report()
    loop.advance(by: .seconds(2))
    report.loopHasTurned()
    #expect(loop.timers.count == 1)
    loop.advance(by: .seconds(3))
    // The turn of the look itself.
    report.loopHasTurned()
    #expect(loop.timers.count == 0)
  }

  @Test func `that is stopped says nothing more`() {
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
