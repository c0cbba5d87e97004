// RollCallTests.swift -- single checks of threads, on a virtual clock.

import EventLoop
import ServiceManager
import TestSupport
import Testing

@Suite struct `A roll call` {
  private let loop = SimulatedLoop()
  private let threads = [ScriptedThread("first"), ScriptedThread("second")]

  private func standing() -> (names: [String], time: Duration) {
    let begin = loop.now
    nonisolated(unsafe) let threads = threads
    let names = loop.run { [loop] in await RollCall.standing(threads, on: loop, within: .seconds(2)) }
    return (names, loop.now - begin)
  }

  @Test func `a roll call ends as soon as every thread has completed a turn`() {
    let (names, time) = standing()
    #expect(names.isEmpty && time <= .milliseconds(1))
    #expect(threads.map(\.nudges) == [1, 1])
  }

  @Test func `a roll call names the stuck threads after its patience`() {
    threads[1].lostNudges = nil
    let (names, time) = standing()
    #expect(names == ["second"] && time == .seconds(2))
    #expect(threads[0].nudges == 1 && (10...60).contains(threads[1].nudges))
  }

  @Test func `a roll call does not mistake a lost nudge for a stuck thread`() {
    for thread in threads { thread.lostNudges = 3 }
    let (names, time) = standing()
    #expect(names.isEmpty && time < .milliseconds(50))
  }

  @Test func `a roll call without threads ends at once`() {
    let names = loop.run { [loop] in await RollCall.standing([], on: loop, within: .seconds(2)) }
    #expect(names.isEmpty)
  }
}
