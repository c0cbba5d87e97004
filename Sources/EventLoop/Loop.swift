// Loop.swift -- the loop as the cold path sees it: an executor, a clock and timers.
//
// Two types conform: `EventLoop` (libevent, the kernel's clock) and the tests' `SimulatedLoop` (a virtual clock).

/// A serial executor with a clock and timers. All members except `enqueue` are for the loop's own thread.
public protocol Loop: SerialExecutor, TaskExecutor, AnyObject {
  /// The time of the current turn.
  var now: BootInstant { get }
  /// The time, read on each use, for measurements within a turn.
  var preciseNow: BootInstant { get }
  /// Seconds since 1970 by the machine's wall clock: for signatures and files only.
  var wallTime: Int64 { get }
  var timers: TimerHeap { get }
  /// Runs `action` when all that was queued before has run, in the time of a turn that all such actions share: for what
  /// strangers cause, and for each part of work that has many.
  func queue(_ action: @escaping () -> Void)
  /// The same, for a place; allocates nothing on a real loop.
  func queue(_ place: PlaceEntry)
  /// Whether the caller may use what belongs to this loop: it is on the loop's thread, or the loop has not run yet. Any
  /// thread.
  var isAccessible: Bool { get }
}

extension Loop {
  /// Traps in a debug build if the caller is not on this loop; costs nothing in a release. A type that belongs to a loop
  /// calls it wherever other types enter it.
  @inlinable
  public func assertCurrent(_ function: StaticString = #function, file: StaticString = #fileID, line: UInt = #line) {
    assert(isAccessible, "\(function) is not on its loop", file: file, line: line)
  }

  /// A virtual clock does not advance within a turn.
  public var preciseNow: BootInstant { now }

  /// Without a time of its own a turn has room for everything.
  public func queue(_ action: @escaping () -> Void) { inNextTurn(action) }

  public func queue(_ place: PlaceEntry) { queue { place.run() } }

  /// Runs `action` in the loop's next turn, whatever becomes of the caller: it must hold what it needs. What may be taken
  /// back, or comes later, needs an `OwnedTimer`.
  public func inNextTurn(_ action: @escaping () -> Void) { timers.insert(TimerEntry(), at: now, on: self, action) }

  /// Starts a task on this loop. Call it on the loop: what the task captures stays there, and need not be `Sendable`.
  ///
  /// A continuation resumes on the executor that its task prefers. Without that preference it would be a thread of the global
  /// pool, even in an actor on this loop.
  @discardableResult
  @inlinable
  public func startTask<Value: Sendable>(_ work: @escaping @isolated(any) () async -> Value) -> Task<Value, Never> {
    assertCurrent()
    // A closure around it would cost an allocation for each task.
    nonisolated(unsafe) let work: @isolated(any) () async -> Value = work
    return Task(executorPreference: self, operation: work)
  }

  /// Whether the machine must have slept since `begin`: more than twice the timeout has passed. A response that was in flight
  /// is then older than its TTL suggests.
  public func hasSlept(since begin: BootInstant, waitingFor timeout: Duration) -> Bool { now - begin > timeout * 2 }

  /// Suspends the calling task, which must run on this loop, for `delay` of the loop's clock.
  public func sleep(for delay: Duration) async {
    await withCheckedContinuation { continuation in
      timers.insert(TimerEntry(), at: now + delay, on: self) { continuation.resume() }
    }
  }
}
