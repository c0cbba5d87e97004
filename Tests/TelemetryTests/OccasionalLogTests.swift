// OccasionalLogTests.swift -- a repeated failure is one line a minute, and no reason hides another.

import Logging
import Synchronization
import Telemetry
import TestSupport
import Testing

private let second: Int64 = 1_000_000_000

/// Alarms that the test triggers.
private final class Alarms: Sendable {
  private let waiting = Mutex<[(deadline: Int64, action: @Sendable (Int64) -> Void)]>([])

  var count: Int { waiting.withLock { $0.count } }

  func add(_ deadline: Int64, _ action: @escaping @Sendable (Int64) -> Void) {
    waiting.withLock { $0.append((deadline, action)) }
  }

  func goOff(at now: Int64) {
    let due = waiting.withLock { waiting in
      defer { waiting.removeAll { $0.deadline <= now } }
      return waiting.filter { $0.deadline <= now }
    }
    for alarm in due { alarm.action(now) }
  }
}

@Suite struct `The occasional log` {
  private let lines = LogLines()
  private let recorder = FlightRecorder(capacity: 100)
  private let alarms = Alarms()
  private let log: OccasionalLog

  init() { log = OccasionalLog(lines.logger, recorder: recorder) { [alarms] in alarms.add($0, $1) } }

  private func note(_ reason: String, at now: Int64) { log.log(.warning, reason: reason, now: now, "\(reason) failed") }

  /// The logged lines, with `TIME` for the start of a count.
  private var said: [String] { lines.all.map { withoutTimes($0) } }

  @Test func `the first event of a reason is logged, and the count of others after a minute`() {
    for number in 0..<5 { note("a", at: Int64(number) * second) }
    note("a", at: 60 * second - 1)
    #expect(said == ["warning a failed"])
    alarms.goOff(at: 60 * second)
    #expect(said == ["warning a failed", "warning a failed (5 times more since TIME)"])
    // The count was a line too.
    note("a", at: 61 * second)
    #expect(lines.all.count == 2)
    alarms.goOff(at: 120 * second)
    #expect(said.last == "warning a failed (1 times more since TIME)")
    alarms.goOff(at: 180 * second)
    #expect(lines.all.count == 3 && alarms.count == 0)
    note("a", at: 180 * second)
    #expect(said.last == "warning a failed")
  }

  @Test func `an event before a late alarm logs the count, and the alarm nothing`() {
    for number in 0..<3 { note("a", at: Int64(number) * second) }
    note("a", at: 900 * second)
    #expect(said == ["warning a failed", "warning a failed (3 times more since TIME)"])
    note("a", at: 901 * second)
    alarms.goOff(at: 902 * second)
    #expect(lines.all.count == 2)
    alarms.goOff(at: 960 * second)
    #expect(said.last == "warning a failed (1 times more since TIME)")
  }

  @Test func `the count is logged with its start`() throws {
    let before = LogTime.now.nanoseconds / 1_000_000
    for _ in 0..<2 { note("a", at: 0) }
    let after = LogTime.now.nanoseconds / 1_000_000
    alarms.goOff(at: 60 * second)
    let allowed = (before...after).map { LogTime(nanoseconds: $0 * 1_000_000).text }
    #expect(allowed.contains { lines.all.last == "warning a failed (1 times more since \($0))" })
  }

  @Test func `the recorder gets each count that is not logged yet once, and no single events`() {
    for number in 0..<5_000 { note("a", at: Int64(number)) }
    note("b", at: 0)
    #expect(recorder.events.isEmpty)
    log.recordCounts()
    log.recordCounts()
    func recorded() -> [String] { recorder.events.map { withoutTimes("\($0.level) \($0.text)") } }
    #expect(recorded() == ["warning a failed (4999 times more since TIME)"])
    note("b", at: second)
    note("a", at: second)
    log.recordCounts()
    #expect(
      recorded().dropFirst() == [
        "warning a failed (5000 times more since TIME)", "warning b failed (1 times more since TIME)",
      ])
    #expect(said == ["warning a failed", "warning b failed"])
  }

  @Test func `each reason is counted separately`() {
    for _ in 0..<3 {
      note("a", at: 0)
      note("b", at: 0)
    }
    #expect(lines.all == ["warning a failed", "warning b failed"])
  }

  @Test func `a suppressed message is not composed`() {
    var composed = 0
    func message() -> String {
      composed += 1
      return "m"
    }
    for _ in 0..<10 { log.log(.error, reason: "a", now: 0, message()) }
    #expect(composed == 1)
  }

  @Test func `every event is a line or counted in a later one, and no reason has two lines a minute`() {
    var random = SeededGenerator(seed: testSeed)
    var (now, events) = (Int64(0), [Int](repeating: 0, count: 20))
    var logged = [Int64](repeating: -60 * second, count: 20)
    /// Checks the lines from an index on.
    func check(_ start: Int) {
      for line in lines.all[start...] {
        guard let reason = line.firstMatch(of: #/r(\d+) /#).flatMap({ Int($0.1) }) else { continue }
        #expect(now - logged[reason] >= 60 * second)
        logged[reason] = now
      }
    }
    for _ in 0..<20_000 {
      now += Int64.random(in: 0...second, using: &random)
      let reason = Int.random(in: 0..<20, using: &random)
      let before = lines.all.count
      if Bool.random(using: &random) { alarms.goOff(at: now) }
      events[reason] += 1
      note("r\(reason)", at: now)
      check(before)
    }
    now += 60 * second
    alarms.goOff(at: now)
    for reason in 0..<20 {
      let told = lines.all.filter { $0.hasPrefix("warning r\(reason) ") }
      let counted = told.map { $0.firstMatch(of: /\((\d+) times more/).flatMap { Int($0.1) } ?? 1 }.reduce(0, +)
      #expect(counted == events[reason])
    }
    #expect(alarms.count == 0)
  }

  @Test func `a full table keeps the minute of every known reason`() {
    for number in 0..<256 { note("r\(number)", at: Int64(number) * second / 5) }
    note("r0", at: 61 * second)
    note("r255", at: 62 * second)
    #expect(lines.all.count == 256 + 1)
  }

  @Test func `reasons beyond the limit share one entry until known ones expire`() {
    for number in 0..<1_500 { note("r\(number)", at: Int64(number)) }
    #expect(lines.all.count == 256 + 1)
    #expect(said.last == "warning r256 failed")
    alarms.goOff(at: 61 * second)
    #expect(said.last == "warning r256 failed, and other events (1243 times more since TIME)")
    note("r1000", at: 62 * second)
    #expect(said.last == "warning r1000 failed")
    #expect(lines.all.count == 256 + 3)
  }

  @Test func `no count is lost when a reason expires`() {
    for number in 0..<256 { note("r\(number)", at: 0) }
    note("r7", at: second)
    // The alarm is late, and the other reasons have expired.
    for number in 1_000..<1_010 { note("r\(number)", at: 70 * second) }
    alarms.goOff(at: 71 * second)
    #expect(said.last == "warning r7 failed (1 times more since TIME)")
  }
}

private func withoutTimes(_ line: String) -> String {
  line.replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/, with: "TIME")
}
