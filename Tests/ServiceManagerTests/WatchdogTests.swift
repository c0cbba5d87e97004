// WatchdogTests.swift -- pings only while every thread makes progress, on a virtual clock.

import EventLoop
import ServiceManager
import TestSupport
import Testing

@Suite struct `A watchdog` {
  private let loop = SimulatedLoop()
  private let threads = [ScriptedThread("first"), ScriptedThread("second")]
  private let record = Record()

  private final class Record {
    var pings: [BootInstant] = []
    var silent: [[String]] = []
  }

  private func watchdog() -> Watchdog {
    Watchdog(threads, on: loop, timeout: .seconds(10)) { [loop, record] in
      record.pings.append(loop.now)
    } onSilence: { [record] in
      record.silent.append($0)
    }
  }

  @Test func `a watchdog pings twice per timeout`() {
    let watchdog = watchdog()
    watchdog.start()
    loop.advance(by: .seconds(60))
    #expect((11...12).contains(record.pings.count))
    for (one, next) in zip(record.pings, record.pings.dropFirst()) { #expect(next - one < .milliseconds(5_100)) }
    #expect(record.silent.isEmpty)
  }

  @Test func `a watchdog does not nudge threads that make progress`() {
    let watchdog = watchdog()
    watchdog.start()
    for _ in 0..<10 {
      for thread in threads { thread.turns += 100 }
      loop.advance(by: .seconds(5))
    }
    #expect(record.pings.count == 10)
    #expect(threads.allSatisfy { $0.nudges == 0 })
  }

  @Test(arguments: [0, 1])
  func `a watchdog does not ping while a thread is stuck, and reports it once`(standing: Int) {
    let watchdog = watchdog()
    watchdog.start()
    loop.advance(by: .milliseconds(5_500))
    #expect(record.pings.count == 1)
    threads[standing].lostNudges = nil
    loop.advance(by: .seconds(60))
    #expect(record.pings.count == 1)
    #expect(record.silent == [[threads[standing].name]])
    // Nudged repeatedly, at intervals.
    #expect((10...400).contains(threads[standing].nudges))
  }

  @Test func `a watchdog pings again when a stuck thread continues`() {
    let watchdog = watchdog()
    watchdog.start()
    threads[1].lostNudges = nil
    loop.advance(by: .seconds(8))
    #expect(record.pings.isEmpty)
    threads[1].lostNudges = 0
    loop.advance(by: .milliseconds(500))
    #expect(record.pings.count == 1)
    loop.advance(by: .milliseconds(5_300))
    #expect(record.pings.count == 2)
  }

  @Test func `a watchdog does not mistake a lost nudge for a stuck thread`() {
    let watchdog = watchdog()
    watchdog.start()
    for thread in threads { thread.lostNudges = 3 }
    loop.advance(by: .milliseconds(5_400))
    #expect(record.pings.count == 1)
    #expect(record.silent.isEmpty)
  }

  @Test func `a stopped watchdog wakes no thread`() {
    let watchdog = watchdog()
    watchdog.start()
    watchdog.stop()
    #expect(loop.timers.count == 0)
  }
}
