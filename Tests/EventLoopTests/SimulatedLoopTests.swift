// SimulatedLoopTests.swift -- the tests' loop with virtual time, which passes at once and is the same in every run.

import EventLoop
import TestSupport
import Testing

@Suite struct `A simulated loop` {
  @Test func `an hour of sleeping takes no time and ends at the right instant`() {
    let loop = SimulatedLoop()
    let start = loop.now
    let end = loop.run {
      for _ in 0..<3600 { await loop.sleep(for: .seconds(1)) }
      return loop.now
    }
    #expect(end - start == .seconds(3600))
  }

  @Test func `the clock stops at each deadline on the way, and at the end`() {
    let loop = SimulatedLoop(start: 10)
    var seen: [Int64] = []
    for delay: Int64 in [3, 1, 2] {
      loop.schedule(after: .seconds(delay)) { seen.append(loop.now.nanoseconds / 1_000_000_000) }
    }
    loop.advance(by: .milliseconds(2500))
    #expect(seen == [11, 12])
    #expect(loop.now.nanoseconds == 12_500_000_000)
    loop.advance(by: .seconds(1))
    #expect(seen == [11, 12, 13])
  }

  @Test func `a deadline in the past does not turn the clock back`() {
    let loop = SimulatedLoop(start: 10)
    var seen: Int64 = 0
    loop.schedule(at: BootInstant(nanoseconds: 0)) { seen = loop.now.nanoseconds }
    loop.advance(by: .seconds(1))
    #expect(seen == 10_000_000_000)
  }

  @Test func `wall time follows the virtual clock and can be made to jump`() {
    let loop = SimulatedLoop(start: 0)
    let before = loop.wallTime
    loop.advance(by: .seconds(90))
    #expect(loop.wallTime - before == 90)
    loop.wallOffset -= 3600
    #expect(loop.wallTime - before == 90 - 3600)
  }

  @Test func `20,000 fetches that each race a timeout give the same log in every run`() {
    let first = Race(seed: testSeed).log
    let second = Race(seed: testSeed).log
    #expect(first == second)
    #expect(first.count == 20_000)
    let timeouts = first.count { $0.isTimeout }
    #expect(timeouts > 2_000)
    #expect(timeouts < 18_000)
    #expect(first != Race(seed: testSeed &+ 1).log)
  }
}

/// Twenty clients ask one after the other; each fetch takes a random time and loses against a timeout of 50 ms.
private struct Race {
  struct Line: Equatable {
    let client: Int
    let fetch: Int
    let isTimeout: Bool
    let at: BootInstant
  }

  let log: [Line]

  init(seed: UInt64) {
    let loop = SimulatedLoop()
    let journal = Journal(on: loop)
    log = loop.run {
      await withTaskGroup(of: Void.self) { group in
        for client in 0..<20 {
          group.addTask {
            var random = SeededGenerator(seed: seed &+ UInt64(client) &* 7919)
            for fetch in 0..<1000 {
              let delay = Duration.microseconds(Int64.random(in: 0..<100_000, using: &random))
              let isTimeout = await Race.isTimeout(delay, loop)
              await journal.add(Line(client: client, fetch: fetch, isTimeout: isTimeout, at: loop.now))
            }
          }
        }
      }
      return await journal.lines
    }
  }

  private static func isTimeout(_ delay: Duration, _ loop: SimulatedLoop) async -> Bool {
    await withTaskGroup(of: Bool.self) { group in
      group.addTask { await !CancellableSleep.finishes(delay, on: loop) }
      group.addTask { await CancellableSleep.finishes(.milliseconds(50), on: loop) }
      defer { group.cancelAll() }
      return await group.next()!
    }
  }
}

/// An actor on the simulated loop.
private actor Journal {
  private let loop: SimulatedLoop
  private(set) var lines: [Race.Line] = []

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(on loop: SimulatedLoop) { self.loop = loop }

  func add(_ line: Race.Line) { lines.append(line) }
}

/// A sleep that ends early when its task is cancelled, as a transfer does.
private final class CancellableSleep: @unchecked Sendable {
  private var timer: OwnedTimer?
  private var continuation: CheckedContinuation<Bool, Never>?

  /// Whether the time passed before the task was cancelled.
  static func finishes(_ delay: Duration, on loop: SimulatedLoop) async -> Bool {
    let sleep = CancellableSleep()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        guard !Task.isCancelled else { return continuation.resume(returning: false) }
        sleep.continuation = continuation
        sleep.timer = loop.schedule(after: delay) { sleep.end(true) }
      }
    } onCancel: {
      sleep.end(false)
    }
  }

  private func end(_ finished: Bool) {
    timer?.cancel()
    continuation?.resume(returning: finished)
    continuation = nil
  }
}
