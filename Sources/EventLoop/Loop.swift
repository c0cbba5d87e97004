// Loop.swift -- what the cold path needs of a loop: an executor, a clock and timers.
//
// Two types conform: `EventLoop` (libevent, the kernel's clock) and the tests' `SimulatedLoop` (a virtual clock).

/// A serial executor with a clock and timers. Everything but `enqueue` is called on the loop's own thread.
public protocol Loop: SerialExecutor, TaskExecutor, AnyObject {
  /// The time at which the present turn of the loop began.
  var now: BootInstant { get }
  /// The time, read anew: for what may take less than a turn.
  var preciseNow: BootInstant { get }
  /// Seconds since 1970 by the machine's wall clock: for signatures and files only.
  var wallTime: Int64 { get }
  /// The timers that wait on this loop.
  var timers: TimerHeap { get }
}

extension Loop {
  /// A virtual clock has no other time.
  public var preciseNow: BootInstant { now }

  /// Runs `action` on the loop at `deadline` (or in the next turn, when that has passed), unless it is cancelled before.
  ///
  /// - Complexity: O(log n) in the number of timers.
  @discardableResult
  public func schedule(at deadline: BootInstant, _ action: @escaping () -> Void) -> LoopTimer {
    timers.insert(deadline: deadline, action)
  }

  /// Runs `action` on the loop after `delay`, unless it is cancelled before.
  @discardableResult
  public func schedule(after delay: Duration, _ action: @escaping () -> Void) -> LoopTimer {
    timers.insert(deadline: now + delay, action)
  }

  /// Whether the machine must have slept while something was waited for, since it came after more than twice the time that
  /// it was given. A response that was under way is as old as that sleep, whatever TTL it gives.
  public func hasSlept(since begin: BootInstant, waitingFor timeout: Duration) -> Bool { now - begin > timeout * 2 }

  /// Suspends the calling task for `delay` by the loop's clock. Must be called from a task that runs on this loop.
  public func sleep(for delay: Duration) async {
    await withCheckedContinuation { continuation in
      schedule(after: delay) { continuation.resume() }
    }
  }
}
