// KeepScheduleTests.swift -- when a name that is kept fresh is due: by TTL, by failures, never while it is under way.

import TestSupport
import Testing

@testable import Refresh

@Suite struct KeepScheduleTests {
  private static let second: Int64 = 1_000_000_000

  private func schedule(_ count: Int = 1, shortest: Int64 = 10) -> KeepSchedule {
    KeepSchedule(count: count, fraction: 0.75, shortest: shortest * KeepScheduleTests.second)
  }

  @Test func `all are due at once, and none while it is under way`() {
    var schedule = schedule(3)
    let (first, again) = (schedule.take(now: 0), schedule.take(now: .max - 1))
    #expect(first == [0, 1, 2])
    #expect(again.isEmpty)
    #expect(schedule.nextDue == nil)
    schedule.succeeded(1, lifetime: 100 * KeepScheduleTests.second, now: 0)
    #expect(schedule.nextDue == 75 * KeepScheduleTests.second)
    let early = schedule.take(now: 75 * KeepScheduleTests.second - 1)
    let due = schedule.take(now: 75 * KeepScheduleTests.second)
    #expect(early.isEmpty)
    #expect(due == [1])
  }

  @Test(arguments: [(9, 10_000), (10, 7500), (1, 10_000), (86_400, 64_800_000)] as [(Int64, Int64)])
  func `an answer is due at its fraction, a short-lived one after the shortest time`(
    lifetime: Int64, milliseconds: Int64
  ) {
    var schedule = schedule()
    _ = schedule.take(now: 0)
    schedule.succeeded(0, lifetime: lifetime * KeepScheduleTests.second, now: 0)
    #expect(schedule.nextDue == milliseconds * 1_000_000)
  }

  @Test func `waits after failures double up to five minutes, and a success ends them`() {
    var schedule = schedule()
    for expected in [10, 20, 40, 80, 160, 300, 300, 300] as [Int64] {
      _ = schedule.take(now: .max - 1)
      schedule.failed(0, now: 0)
      #expect(schedule.nextDue == expected * KeepScheduleTests.second)
    }
    _ = schedule.take(now: .max - 1)
    schedule.succeeded(0, lifetime: 20 * KeepScheduleTests.second, now: 0)
    _ = schedule.take(now: .max - 1)
    schedule.failed(0, now: 0)
    #expect(schedule.nextDue == 10 * KeepScheduleTests.second)
  }

  @Test func `waits after failures are a second at least, whatever the shortest time is`() {
    var schedule = schedule(shortest: 0)
    for expected in [1, 2, 4] as [Int64] {
      _ = schedule.take(now: .max - 1)
      schedule.failed(0, now: 0)
      #expect(schedule.nextDue == expected * KeepScheduleTests.second)
    }
  }

  @Test func `whatever the outcomes are, every question comes again and none is a busy loop`() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<50 {
      var schedule = schedule(4)
      var now: Int64 = 0
      var fetches = [0, 0, 0, 0]
      while now < 3600 * KeepScheduleTests.second {
        for index in schedule.take(now: now) {
          fetches[index] += 1
          let lifetime = Int64.random(in: 1...300, using: &random) * KeepScheduleTests.second
          if random.oneIn(3) {
            schedule.failed(index, now: now)
          } else {
            schedule.succeeded(index, lifetime: lifetime, now: now)
          }
        }
        guard let next = schedule.nextDue else { break }
        #expect(next > now)
        now = next
      }
      // At most one every 7.5 s, at least one every five minutes.
      #expect(fetches.allSatisfy { (12...480).contains($0) })
    }
  }
}
