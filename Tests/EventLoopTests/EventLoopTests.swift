// EventLoopTests.swift -- the real loop: jobs, actions from other threads, wake-ups, sleeping tasks, actors.

import CEvent
import EventLoop
import Glibc
import TestSupport
import Testing

@Suite struct `A real loop` {
  private let loop: EventLoop

  init() throws { loop = try EventLoop() }

  @Test func `timers fire in order, none early, and none after its cancellation`() {
    var fired: [Int] = []
    let start = loop.now
    loop.schedule(after: .milliseconds(9)) {
      fired.append(3)
      #expect(loop.now - start >= .milliseconds(9))
      loop.stop()
    }
    loop.schedule(after: .milliseconds(3)) { fired.append(1) }
    let cancelled = loop.schedule(after: .milliseconds(4)) { fired.append(2) }
    cancelled.cancel()
    loop.run()
    #expect(fired == [1, 3])
  }

  @Test func `a timer that libevent reports slightly early still fires`() throws {
    for _ in 0..<5 {
      let loop = try EventLoop()
      let alarm = StoppingThread(loop, after: 10)
      let tick = CoarseClock.spinToEndOfTick()
      let deadline = BootInstant.now + tick * 2
      loop.schedule(at: deadline) { loop.stop() }
      // The loop turns without a pause until shortly before the deadline, to hit the moment at which the coarse clock has
      // reached it and ours has not.
      loop.wake()
      loop.everyTurn { if BootInstant.now < deadline + .microseconds(-200) { loop.wake() } }
      loop.run()
      #expect(!alarm.hasRung())
    }
  }

  @Test func `a loop is accessible to the thread that sets it up, then to its own thread only`() {
    #expect(loop.isAccessible)
    loop.assertCurrent()
    let elsewhere = Box<Bool?>(nil)
    let loop = loop
    loop.execute {
      loop.assertCurrent()
      #expect(loop.isAccessible)
      PlainThread { elsewhere.value = loop.isAccessible }.join()
      loop.stop()
    }
    loop.run()
    #expect(elsewhere.value == false)
  }

  @Test func `actions queued before the loop runs are executed in one turn and in order`() {
    let done = Box<[Int]>([])
    for number in 0..<1000 { loop.execute { done.value.append(number) } }
    var doneInFirstTurn = 0
    loop.everyTurn {
      if loop.turnCount == 1 { doneInFirstTurn = done.value.count }
      loop.stop()
    }
    loop.run()
    #expect(doneInFirstTurn == 1000)
    #expect(done.value == Array(0..<1000))
  }

  @Test func `an action queued by an action runs in a later turn`() {
    let turns = Box<[UInt64]>([])
    let loop = loop
    loop.execute {
      turns.value.append(loop.turnCount)
      loop.execute {
        turns.value.append(loop.turnCount)
        loop.stop()
      }
    }
    loop.run()
    #expect(turns.value.count == 2)
    #expect(turns.value.first != turns.value.last)
  }

  @Test func `actions of four threads all run on the loop's thread, each thread's in order`() {
    let journal = Box<[[Int]]>(Array(repeating: [], count: 4))
    let left = Box(4 * 2000)
    let wrongThread = Box(0)
    let loop = loop
    let threads = (0..<4).map { thread in
      PlainThread {
        for number in 0..<2000 {
          loop.execute {
            if !loop.isCurrent { wrongThread.value += 1 }
            journal.value[thread].append(number)
            left.value -= 1
            if left.value == 0 { loop.stop() }
          }
        }
      }
    }
    loop.run()
    threads.forEach { $0.join() }
    #expect(wrongThread.value == 0)
    for thread in 0..<4 { #expect(journal.value[thread] == Array(0..<2000)) }
  }

  @Test func `an idle loop is stopped from another thread`() {
    let loop = loop
    let stopper = Box<PlainThread?>(nil)
    loop.execute { stopper.value = PlainThread { loop.stop() } }
    loop.run()
    stopper.value?.join()
    #expect(loop.turnCount >= 1)
  }

  @Test func `a loop stopped before it runs executes only ready actions`() {
    loop.schedule(after: .zero) { Issue.record("a turn was made") }
    loop.stop()
    loop.run()
    #expect(loop.turnCount == 0)
  }

  @Test func `a task sleeps on the loop for at least its delay`() {
    let loop = loop
    let slept = Box(Duration.zero)
    loop.startTask {
      let start = BootInstant.now
      for _ in 0..<5 { await loop.sleep(for: .milliseconds(2)) }
      slept.value = BootInstant.now - start
      loop.stop()
    }
    loop.run()
    #expect(slept.value >= .milliseconds(10))
  }

  @Test func `tasks started on other threads run on the loop, one at a time`() {
    let loop = loop
    let state = Box((finished: 0, inside: 0, violations: 0))
    let starters = (0..<4).map { _ in
      PlainThread {
        for _ in 0..<250 {
          Task(executorPreference: loop) {
            if !loop.isCurrent { state.value.violations += 1 }
            state.value.inside += 1
            if state.value.inside != 1 { state.value.violations += 1 }
            state.value.inside -= 1
            await Task.yield()
            if !loop.isCurrent { state.value.violations += 1 }
            state.value.finished += 1
            if state.value.finished == 1000 { loop.stop() }
          }
        }
      }
    }
    loop.run()
    starters.forEach { $0.join() }
    #expect(state.value.finished == 1000)
    #expect(state.value.violations == 0)
  }

  @Test func `a task that the loop starts is on its thread after other threads have resumed it`() {
    var (steps, strays) = (0, 0)
    loop.startTask { [loop] in
      for _ in 0..<100 {
        await resumedElsewhere()
        if loop.isCurrent { steps += 1 } else { strays += 1 }
      }
      loop.stop()
    }
    loop.run()
    #expect((steps, strays) == (100, 0))
  }

  @Test func `so is a task that an actor on the loop starts`() {
    let counter = Counter(on: loop)
    loop.execute { counter.assumeIsolated { $0.incrementElsewhere(Most(100)) } }
    loop.run()
    #expect(counter.assumeIsolated { $0.count } == 100)
  }

  @Test func `an actor on the loop can be entered by tasks, and synchronously in callbacks`() throws {
    let loop = loop
    let counter = Counter(on: loop)
    let pipe = try Pipe()
    let event = LoopEvent(on: loop, descriptor: pipe.reader, .read) { interest in
      #expect(interest.contains(.read))
      pipe.drain()
      counter.assumeIsolated { $0.count += 10 }
      loop.stop()
    }
    loop.startTask {
      await counter.increment()
      pipe.fill()
    }
    withExtendedLifetime(event) { loop.run() }
    #expect(counter.assumeIsolated { $0.count } == 11)
  }
}

/// libevent's coarse clock, which advances in steps of some milliseconds.
private enum CoarseClock {
  /// Returns when most of a tick has passed; a wait that begins then ends early by a finer clock.
  static func spinToEndOfTick() -> Duration {
    let tick = reading { clock_getres($0, $1) }
    let jump = reading(clock_gettime)
    while reading(clock_gettime) == jump {}
    let end = BootInstant.now + tick * 0.8
    while BootInstant.now < end {}
    return tick
  }

  private static func reading(_ call: (clockid_t, UnsafeMutablePointer<timespec>) -> Int32) -> Duration {
    var time = timespec()
    _ = call(CLOCK_MONOTONIC_COARSE, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}

/// A thread that stops a loop which would otherwise wait forever after a failure.
private final class StoppingThread {
  private let pipe = try? Pipe()
  private let rang = Box(false)
  private var thread: PlainThread?

  init(_ loop: EventLoop, after seconds: Int32) {
    guard let reader = pipe?.reader else { return }
    let rang = rang
    thread = PlainThread {
      var end = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
      guard poll(&end, 1, seconds * 1000) == 0 else { return }
      rang.value = true
      loop.stop()
    }
  }

  /// Ends the thread; whether it had to stop the loop.
  func hasRung() -> Bool {
    pipe?.fill()
    thread?.join()
    return rang.value
  }
}

/// Suspends the calling task until another thread resumes it.
private func resumedElsewhere() async {
  var thread: PlainThread?
  await withCheckedContinuation { continuation in thread = PlainThread { continuation.resume() } }
  thread?.join()
}

/// A number that must not leave its thread: not `Sendable`.
private final class Most {
  let value: Int
  init(_ value: Int) { self.value = value }
}

private actor Counter {
  private let loop: EventLoop
  var count = 0

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(on loop: EventLoop) { self.loop = loop }

  func increment() {
    #expect(loop.isCurrent)
    count += 1
  }

  /// Counts to a number, each time after another thread has resumed it, and stops the loop.
  func incrementElsewhere(_ most: Most) {
    loop.startTask {
      while self.count < most.value {
        await resumedElsewhere()
        self.increment()
      }
      self.loop.stop()
    }
  }
}
