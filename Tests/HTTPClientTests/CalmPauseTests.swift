// CalmPauseTests.swift -- pauses that a server asks for, on a clock of the test's own.

import EventLoop
import Testing

@testable import HTTPClient

@Suite struct `The pause that a server asks for` {
  private func at(_ milliseconds: Int64) -> BootInstant { BootInstant(nanoseconds: milliseconds * 1_000_000) }

  @Test func `the pause that a server asks for doubles up to 64 times while the server repeats it`() {
    var pause = CalmPause(shortest: .milliseconds(20))
    var now: Int64 = 0
    var pauses: [Int64] = []
    for _ in 0..<9 {
      pause.begin(at: at(now))
      let begin = now
      while pause.isOn(at: at(now)) { now += 1 }
      pauses.append(now - begin)
    }
    #expect(pauses == [20, 40, 80, 160, 320, 640, 1280, 1280, 1280])
  }

  @Test func `the transfers in flight ask for one pause, and their answers do not end it`() {
    var pause = CalmPause(shortest: .milliseconds(20))
    for time in [0, 5, 19] as [Int64] { pause.begin(at: at(time)) }
    pause.answered(at: at(19))
    #expect(pause.isOn(at: at(19)) && !pause.isOn(at: at(20)))
  }

  @Test func `the pause is the shortest again after an answer`() {
    var pause = CalmPause(shortest: .milliseconds(20))
    pause.begin(at: at(0))
    pause.begin(at: at(20))
    pause.answered(at: at(60))
    pause.begin(at: at(70))
    #expect(pause.isOn(at: at(89)) && !pause.isOn(at: at(90)))
  }
}
