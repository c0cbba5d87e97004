// ClockTests.swift -- sleep by clocks that the test moves, and the kernel's own timer.

import EventLoop
import Glibc
import TestSupport
import Testing

@testable import NetworkWatch

@Suite struct `The sleep detector` {
  private var detector = SleepDetector(bootTime: .seconds(1_000), monotonic: .seconds(900))

  @Test mutating func `time awake does not count as sleep`() {
    for hour in 1...1_000 {
      #expect(detector.asleep(bootTime: .seconds(1_000 + hour * 3_600), monotonic: .seconds(900 + hour * 3_600)) == nil)
    }
  }

  @Test mutating func `a sleep is reported once, with its length`() {
    #expect(detector.asleep(bootTime: .seconds(4_610), monotonic: .seconds(910)) == .seconds(3_600))
    #expect(detector.asleep(bootTime: .seconds(4_611), monotonic: .seconds(911)) == nil)
    #expect(detector.asleep(bootTime: .seconds(4_621), monotonic: .seconds(911)) == .seconds(10))
  }

  @Test mutating func `a moment is no sleep, but moments add up`() {
    #expect(detector.asleep(bootTime: .milliseconds(1_001_000), monotonic: .seconds(900)) == nil)
    #expect(detector.asleep(bootTime: .milliseconds(1_001_001), monotonic: .seconds(900)) == .milliseconds(1_001))
  }

  @Test mutating func `a thread that is held up between the clocks does not make the next look a sleep`() {
    #expect(detector.asleep(bootTime: .seconds(1_001), monotonic: .seconds(960)) == nil)
    #expect(detector.asleep(bootTime: .seconds(1_061), monotonic: .seconds(961)) == nil)
  }

  @Test func `this machine's clocks can be read`() {
    var detector = SleepDetector()
    #expect(detector.asleep() == nil)
  }
}

@Suite(.serialized) struct `The clock watch` {
  @Test func `the clock watch reports nothing without a cause`() throws {
    let loop = try EventLoop()
    var changes: [NetworkChange] = []
    let watch = try ClockWatch(on: loop) { changes.append($0) }
    loop.startTask {
      await loop.turn()
      loop.stop()
    }
    loop.run()
    #expect(changes.isEmpty && !watch.check() && watch.lastSleep == .zero)
  }

  /// Sets the machine's wall clock to the time it already shows: the kernel notifies its watchers all the same.
  private static func touchWallClock() -> Bool {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return clock_settime(CLOCK_REALTIME, &now) == 0
  }

  @Test(.enabled(if: touchWallClock(), "the clock may not be set here"), arguments: [0, 3_600])
  func `the clock watch gets the kernel's notices`(asleep: Int) throws {
    let loop = try EventLoop()
    var changes: [NetworkChange] = []
    let watch = try ClockWatch(on: loop, detector: .seen(secondsAgo: asleep)) {
      changes.append($0)
      loop.schedule(after: .zero) { if changes.count < 2 { _ = Self.touchWallClock() } else { loop.stop() } }
    }
    loop.schedule(after: .zero) { _ = Self.touchWallClock() }
    loop.schedule(after: .seconds(10)) { loop.stop() }
    loop.run()
    #expect(changes == [asleep > 0 ? .resume : .clockSet, .clockSet])
    withExtendedLifetime(watch) {}
  }

  @Test func `a wall clock that moves while the machine is awake was set`() throws {
    var changes: [NetworkChange] = []
    let watch = try ClockWatch(on: EventLoop()) { changes.append($0) }
    watch.wallClockMoved()
    watch.wallClockMoved()
    #expect(changes == [.clockSet, .clockSet])
  }

  @Test func `a wall clock that moves because the machine has slept means that it resumed`() throws {
    var changes: [NetworkChange] = []
    let watch = try ClockWatch(on: EventLoop(), detector: .seen(secondsAgo: 3_600)) { changes.append($0) }
    watch.wallClockMoved()
    #expect(changes == [.resume])
    #expect(watch.lastSleep > .seconds(3_599) && watch.lastSleep < .seconds(3_601))
    #expect(!watch.check())
  }
}

extension SleepDetector {
  /// One whose last look was `secondsAgo` seconds of sleep ago.
  fileprivate static func seen(secondsAgo: Int) -> SleepDetector {
    var now = [timespec(), timespec()]
    clock_gettime(CLOCK_BOOTTIME, &now[0])
    clock_gettime(CLOCK_MONOTONIC, &now[1])
    return SleepDetector(
      bootTime: .seconds(now[0].tv_sec - secondsAgo) + .nanoseconds(now[0].tv_nsec),
      monotonic: .seconds(now[1].tv_sec) + .nanoseconds(now[1].tv_nsec))
  }
}
