// OccasionalLogTests.swift -- a failure that repeats is one line a minute, and no reason hides another.

import Logging
import Telemetry
import TestSupport
import Testing

private let second: Int64 = 1_000_000_000

@Suite struct `The occasional log` {
  private let lines = LogLines()
  private let log: OccasionalLog

  init() { log = OccasionalLog(lines.logger) }

  private func note(_ reason: String, at now: Int64) { log.log(.warning, reason: reason, now: now, "\(reason) failed") }

  @Test func `passes on the first event of a reason, and counts those of the next minute`() {
    for number in 0..<5 { note("a", at: Int64(number) * second) }
    note("a", at: 60 * second - 1)
    #expect(lines.all == ["warning a failed"])
    note("a", at: 60 * second)
    #expect(lines.all == ["warning a failed", "warning a failed (and 5 times more in the last minute)"])
    note("a", at: 120 * second)
    #expect(lines.all.last == "warning a failed")
  }

  @Test func `counts each reason for itself`() {
    for _ in 0..<3 {
      note("a", at: 0)
      note("b", at: 0)
    }
    #expect(lines.all == ["warning a failed", "warning b failed"])
  }

  @Test func `composes no message that is not logged`() {
    var composed = 0
    func message() -> String {
      composed += 1
      return "m"
    }
    for _ in 0..<10 { log.log(.error, reason: "a", now: 0, message()) }
    #expect(composed == 1)
  }

  @Test func `loses no event: each is a line or counted in a later one, and no reason has two lines a minute`() {
    var random = SeededGenerator(seed: testSeed)
    var (now, events) = (Int64(0), [Int](repeating: 0, count: 20))
    var logged = [Int64](repeating: -60 * second, count: 20)
    for _ in 0..<20_000 {
      now += Int64.random(in: 0...second, using: &random)
      let reason = Int.random(in: 0..<20, using: &random)
      let before = lines.all.count
      events[reason] += 1
      note("r\(reason)", at: now)
      #expect(lines.all.count - before == (now - logged[reason] >= 60 * second ? 1 : 0))
      if lines.all.count > before { logged[reason] = now }
    }
    for reason in 0..<20 {
      events[reason] += 1
      note("r\(reason)", at: now + 60 * second)
      let told = lines.all.filter { $0.hasPrefix("warning r\(reason) ") }
      let counted = told.compactMap { $0.firstMatch(of: /and (\d+) times more/).flatMap { Int($0.1) } }.reduce(0, +)
      #expect(told.count + counted == events[reason])
    }
  }

  @Test func `keeps the minute of every known reason when as many are known as it remembers`() {
    for number in 0..<256 { note("r\(number)", at: Int64(number) * second / 5) }
    note("r0", at: 61 * second)
    note("r255", at: 62 * second)
    #expect(lines.all.count == 256 + 1)
  }

  @Test func `forgets reasons rather than grow without end`() {
    for number in 0..<1000 { note("r\(number)", at: Int64(number)) }
    #expect(lines.all.count == 1000)
    note("r999", at: 1000)
    #expect(lines.all.count == 1000)
    // Forgotten long ago, and therefore logged again.
    note("r0", at: 1000)
    #expect(lines.all.count == 1001)
  }
}
