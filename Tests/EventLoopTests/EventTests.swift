// EventTests.swift -- descriptor and signal events: when they fire, and that they end on deinit.

import EventLoop
import Glibc
import TestSupport
import Testing

@Suite struct `An event` {
  private let loop: EventLoop
  private let pipe: Pipe

  init() throws {
    loop = try EventLoop()
    pipe = try Pipe()
  }

  @Test func `a descriptor that stays readable is reported in every turn`() {
    var count = 0
    pipe.fill()
    let event = LoopEvent(on: loop, descriptor: pipe.reader, .read) { _ in
      count += 1
      if count == 3 { loop.stop() }
    }
    withExtendedLifetime(event) { loop.run() }
    #expect(count == 3)
  }

  @Test func `a writable descriptor is reported as such`() {
    var seen: Interest = []
    let event = LoopEvent(on: loop, descriptor: pipe.writer, .write) { interest in
      seen = interest
      loop.stop()
    }
    withExtendedLifetime(event) { loop.run() }
    #expect(seen == .write)
  }

  @Test func `a released event reports nothing more, even if its own handler released it`() {
    var count = 0
    pipe.fill()
    var event: LoopEvent?
    event = LoopEvent(on: loop, descriptor: pipe.reader, .read) { _ in
      count += 1
      event = nil
    }
    #expect(event != nil)
    // The pipe is readable in every turn.
    var turns = 0
    loop.everyTurn {
      turns += 1
      if turns < 10 { loop.wake() } else { loop.stop() }
    }
    loop.run()
    #expect(count == 1)
  }

  @Test func `a descriptor that an event's handler closes and opens again is watched by another event`() throws {
    let other = try Pipe()
    other.fill()
    pipe.fill()
    let number = pipe.reader
    var first: LoopEvent?
    var second: LoopEvent?
    var isReported = false
    first = LoopEvent(on: loop, descriptor: number, .read) { _ in
      first = nil
      // Closes the pipe and gives its number to another one, in one step: other tests open files meanwhile.
      dup2(other.reader, number)
      second = LoopEvent(on: loop, descriptor: number, .read) { _ in
        isReported = true
        loop.stop()
      }
    }
    loop.schedule(after: .seconds(5)) { loop.stop() }
    loop.run()
    #expect(isReported)
    #expect(first == nil && second != nil)
  }

  @Test func `every signal is reported on the loop's thread`() {
    var count = 0
    let event = LoopEvent(on: loop, signal: SIGUSR2) {
      #expect(loop.isCurrent)
      count += 1
      if count == 1 { kill(getpid(), SIGUSR2) } else { loop.stop() }
    }
    kill(getpid(), SIGUSR2)
    withExtendedLifetime(event) { loop.run() }
    #expect(count == 2)
  }
}
