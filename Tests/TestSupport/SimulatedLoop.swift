// SimulatedLoop.swift -- a loop on a virtual clock: hours of timers pass in milliseconds, the same way every time.

import EventLoop

/// A single-threaded executor whose clock jumps from one timer to the next.
public final class SimulatedLoop: Loop, @unchecked Sendable {
  /// The timers of this loop.
  public let timers = TimerHeap()
  /// The virtual time.
  public private(set) var now: BootInstant
  /// The virtual wall clock, in seconds since 1970; tests may make it jump by setting `wallOffset`.
  public var wallTime: Int64 { now.nanoseconds / 1_000_000_000 + wallOffset }
  /// What to add to the virtual time to get wall time.
  public var wallOffset: Int64 = 1_800_000_000

  private var jobs: [UnownedJob] = []

  /// A loop whose clock stands at `start` seconds.
  public init(start: Int64 = 1_000) { now = BootInstant(nanoseconds: start * 1_000_000_000) }

  /// Takes a job; a simulation has one thread, so this is always that thread.
  public func enqueue(_ job: consuming ExecutorJob) { jobs.append(UnownedJob(job)) }

  /// A simulation has one thread, so every caller is on the loop.
  public var isAccessible: Bool { true }

  /// Checks nothing, for the same reason.
  public func checkIsolated() {}

  /// The loop as an actor's executor.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

  /// Runs the jobs that are ready, without moving the clock.
  public func settle() {
    while !jobs.isEmpty {
      var batch: [UnownedJob] = []
      swap(&batch, &jobs)
      for job in batch {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
      }
    }
  }

  /// Moves the clock on by `duration`, firing every timer on the way in order.
  public func advance(by duration: Duration) {
    let end = now + duration
    settle()
    while let earliest = timers.earliest, earliest <= end, let due = timers.popEarliest() {
      now = max(now, due.deadline)
      due.action()
      settle()
    }
    now = end
  }

  /// Advances the clock without running timers, as when the machine sleeps: what was due meanwhile is late.
  public func sleep(through duration: Duration) { now = now + duration }

  /// Runs `body` as a task on this loop and moves the clock until it has ended.
  ///
  /// - Parameter limit: the virtual time after which a body that still waits is a failure.
  public func run<Value: Sendable>(
    limit: Duration = .seconds(86_400 * 30), _ body: @escaping () async -> Value
  ) -> Value {
    var result: Value?
    startTask { result = await body() }
    let end = now + limit
    settle()
    while result == nil, let due = timers.popEarliest() {
      precondition(due.deadline <= end, "the simulated task did not end in time")
      now = max(now, due.deadline)
      due.action()
      settle()
    }
    guard let result else { preconditionFailure("the simulated task waits for something that never comes") }
    return result
  }
}
