// EventLoopTests.swift -- timers, jobs and wake-ups of the real loop and of the simulated one.

import EventLoop
import Testing
import TestSupport

@Suite struct `A loop` {
  @Test func `a simulated hour of sleeping takes no time and ends at the right instant`() {
    let loop = SimulatedLoop()
    let start = loop.now
    let end = loop.run {
      for _ in 0..<3600 { await loop.sleep(for: .seconds(1)) }
      return loop.now
    }
    #expect(end - start == .seconds(3600))
  }
}
