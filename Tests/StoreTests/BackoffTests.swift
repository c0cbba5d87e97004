// BackoffTests.swift -- the pauses between attempts, what counts as a failure, and the lines of a log.

import EventLoop
import TestSupport
import Testing

@testable import Store

@Suite struct `Schedules of a store` {
  @Test func `pauses double from one second to thirty, each varied by a fifth`() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<100 {
      var backoff = Backoff()
      for seconds in [1, 2, 4, 8, 16, 30, 30, 30] {
        let pause = backoff.next(using: &random)
        #expect(pause >= .milliseconds(800 * seconds) && pause <= .milliseconds(1200 * seconds))
      }
      backoff.reset()
      #expect(backoff.next(using: &random) <= .milliseconds(1200))
    }
  }

  @Test func `three timeouts within ten seconds are a failure, and none that are further apart`() {
    func failures(_ seconds: [Int64]) -> [Bool] {
      var window = TimeoutWindow()
      return seconds.map { window.add(BootInstant(nanoseconds: $0 * 1_000_000_000)) }
    }
    #expect(failures([0, 0, 0]) == [false, false, true])
    #expect(failures([0, 5, 10]) == [false, false, true])
    #expect(failures([0, 5, 11, 16, 17]) == [false, false, false, false, true])
    #expect(failures([0, 11, 22, 33]) == [false, false, false, false])
  }

  @Test func `the median is that of the last 31`() {
    var median = MovingMedian()
    #expect(median.value == nil)
    median.add(.milliseconds(5))
    #expect(median.value == .milliseconds(5))
    for _ in 0..<31 { median.add(.milliseconds(1)) }
    for _ in 0..<15 { median.add(.milliseconds(9)) }
    #expect(median.value == .milliseconds(1))
    median.add(.milliseconds(9))
    #expect(median.value == .milliseconds(9))
  }

  @Test(arguments: [
    (0, "0 ms"), (20, "20 ms"), (999, "999 ms"), (1000, "1.0 s"), (1250, "1.2 s"), (9990, "9.9 s"), (29_600, "30 s"),
    (60_000, "60 s"),
  ]) func `durations have a unit`(milliseconds: Int, text: String) {
    #expect(brief(.milliseconds(milliseconds)) == text)
  }
}
