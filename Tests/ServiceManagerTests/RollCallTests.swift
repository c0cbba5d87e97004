// RollCallTests.swift -- asking threads once whether they go round, on a virtual clock.

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

  @Test func `is over as soon as every thread has gone round`() {
    let (names, time) = standing()
    #expect(names.isEmpty && time <= .milliseconds(1))
    #expect(threads.map(\.nudges) == [1, 1])
  }

  @Test func `names the threads that stand, when there has been time enough`() {
    threads[1].lostNudges = nil
    let (names, time) = standing()
    #expect(names == ["second"] && time == .seconds(2))
    #expect(threads[0].nudges == 1 && (10...60).contains(threads[1].nudges))
  }

  @Test func `does not take a lost nudge for a thread that stands`() {
    for thread in threads { thread.lostNudges = 3 }
    let (names, time) = standing()
    #expect(names.isEmpty && time < .milliseconds(50))
  }

  @Test func `of nobody is over at once`() {
    let names = loop.run { [loop] in await RollCall.standing([], on: loop, within: .seconds(2)) }
    #expect(names.isEmpty)
  }
}
