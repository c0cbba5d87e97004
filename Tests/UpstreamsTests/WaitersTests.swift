// WaitersTests.swift -- no task misses the event that it waits for.

import EventLoop
import TestSupport
import Testing

@testable import Upstreams

@Suite struct WaitersTests {
  private let loop = SimulatedLoop()

  /// How long a task waits that needs to, or does not, when the event comes after a second.
  private func wait(atMost timeout: Duration, isNeeded: Bool) -> Duration {
    let waiters = Waiters(on: loop)
    let event = OwnedTimer()
    event.set(after: .seconds(1), on: loop) { waiters.resumeAll() }
    let begin = loop.now
    nonisolated(unsafe) let waiting = waiters
    loop.run { await waiting.wait(atMost: timeout) { isNeeded } }
    return loop.now - begin
  }

  @Test func `a wait ends with its event, or with its time`() {
    #expect(wait(atMost: .seconds(3), isNeeded: true) == .seconds(1))
    #expect(wait(atMost: .milliseconds(500), isNeeded: true) == .milliseconds(500))
  }

  @Test func `nothing is left of a wait whose time is over`() {
    nonisolated(unsafe) let waiters = Waiters(on: loop)
    loop.run { await waiters.wait(atMost: .seconds(1)) { true } }
    #expect(waiters.count == 0)
  }

  @Test func `an event that has come already is not waited for`() {
    #expect(wait(atMost: .seconds(3), isNeeded: false) == .zero)
  }
}
