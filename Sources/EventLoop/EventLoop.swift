// EventLoop.swift -- one thread's libevent base: events, timers, and an executor for tasks.
//
// One turn: wait for events and run their callbacks, fire due timers, run what is queued for as long as one turn may
// (SharedTime.swift), run the ready jobs.
// Only `enqueue`, `execute`, `wake` and `stop` may be called from other threads.

import CEvent
import Glibc
import Synchronization

/// A failure to create a loop.
public struct EventLoopError: Error, CustomStringConvertible {
  /// The human-readable reason.
  public let description: String
}

/// A libevent base with a timer heap and a job queue; the serial executor of the cold path.
public final class EventLoop: Loop, @unchecked Sendable {
  /// libevent's base, for modules that create their own events on this loop; owned by the loop.
  public let base: OpaquePointer
  public let timers = TimerHeap()
  /// The time of the current turn. The clock is read once per turn, on the first use after the wait.
  public var now: BootInstant {
    if isNowStale {
      lastRead = .now
      isNowStale = false
    }
    return lastRead
  }
  /// The number of turns so far, for the watchdog. Any thread.
  public let turns = Atomic<UInt64>(0)

  private var lastRead = BootInstant.now
  private var isNowStale = false
  private var jobs: [UnownedJob] = []
  /// The thread that runs turns; 0 before the first one.
  private let thread = Atomic<pthread_t>(0)
  private let hasEnded = Atomic<Bool>(false)
  private let inbox = Mutex<Inbox>(Inbox())
  private let wakeDescriptor: Int32
  private let wakePending = Atomic<Bool>(false)
  private let stopRequested = Atomic<Bool>(false)
  private var wakeEvent: UnsafeMutablePointer<event>?
  private var timerEvent: UnsafeMutablePointer<event>?
  private var armedDeadline: BootInstant?
  private var shared = SharedTime()
  private var onTurn: (() -> Void)?
  private var onWait: (() -> Void)?

  private struct Inbox: Sendable {
    var jobs: [UnownedJob] = []
    var actions: [@Sendable () -> Void] = []
  }

  /// `run` starts the loop.
  ///
  /// - Throws: `EventLoopError` if the kernel provides no epoll or event descriptor.
  public init() throws(EventLoopError) {
    guard let base = event_base_new() else { throw EventLoopError(description: "libevent cannot create an event base") }
    let descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
    guard descriptor >= 0 else {
      event_base_free(base)
      throw EventLoopError(description: "cannot create an event descriptor: errno \(errno)")
    }
    self.base = base
    wakeDescriptor = descriptor
    let context = Unmanaged.passUnretained(self).toOpaque()
    wakeEvent = event_new(base, descriptor, Int16(EV_READ | EV_PERSIST), loopDidWake, context)
    timerEvent = event_new(base, -1, 0, loopTimerDue, context)
    event_add(wakeEvent, nil)
  }

  deinit {
    event_free(wakeEvent)
    event_free(timerEvent)
    event_base_free(base)
    close(wakeDescriptor)
  }

  /// The time, read from the kernel on each use.
  public var preciseNow: BootInstant { BootInstant.now }

  /// Seconds since 1970 by the machine's wall clock.
  public var wallTime: Int64 { Int64(time(nil)) }

  /// Whether the caller is on the loop's thread.
  public var isCurrent: Bool { thread.load(ordering: .relaxed) == pthread_self() }

  /// Whether the caller is on the loop's thread, or the loop does not run: before and after, it belongs to the thread that
  /// has it.
  public var isAccessible: Bool {
    thread.load(ordering: .relaxed) == 0 || isCurrent || hasEnded.load(ordering: .acquiring)
  }

  /// Sets the action of every turn between events and jobs, for queues that other threads fill; nil for none.
  public func everyTurn(_ action: (() -> Void)?) { onTurn = action }

  /// Sets the action of every turn between jobs and the wait, for output that a turn has collected; nil for none.
  public func beforeWaiting(_ action: (() -> Void)?) { onWait = action }

  /// Runs turns on the calling thread until `stop`.
  public func run() {
    hasEnded.store(false, ordering: .relaxed)
    thread.store(pthread_self(), ordering: .relaxed)
    while !stopRequested.load(ordering: .acquiring) { turn(mayWait: true) }
    runJobs()
    onWait?()
    hasEnded.store(true, ordering: .releasing)
  }

  /// Runs one turn on the calling thread without waiting, for tests that step through what happens.
  package func turnOnce() {
    thread.store(pthread_self(), ordering: .relaxed)
    turn(mayWait: false)
  }

  private func turn(mayWait: Bool) {
    runJobs()
    onWait?()
    armTimer()
    isNowStale = true
    event_base_loop(base, mayWait && shared.isEmpty ? EVLOOP_ONCE : EVLOOP_ONCE | EVLOOP_NONBLOCK)
    turns.wrappingAdd(1, ordering: .relaxed)
    timers.fire(now: now)
    onTurn?()
    // Streams are read there: what they have queued must not wait for the next event.
    if runShared() { onTurn?() }
  }

  /// Ends `run` after the current turn. Any thread.
  public func stop() {
    stopRequested.store(true, ordering: .releasing)
    wake()
  }

  /// Wakes the loop for a turn. Any thread; several calls before that turn cost one wake-up.
  public func wake() {
    guard !wakePending.exchange(true, ordering: .acquiringAndReleasing) else { return }
    eventfd_write(wakeDescriptor, 1)
  }

  /// Runs `action` on the loop's thread in one of the next turns. Any thread.
  public func execute(_ action: @escaping @Sendable () -> Void) {
    inbox.withLock { $0.actions.append(action) }
    wake()
  }

  /// Enqueues a job of a task that runs on this loop. Called by the Swift runtime from any thread.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if isCurrent {
      jobs.append(job)
    } else {
      inbox.withLock { $0.jobs.append(job) }
      wake()
    }
  }

  /// Lets an actor on this loop use `assumeIsolated` in libevent's callbacks. Traps on other threads.
  public func checkIsolated() { precondition(isCurrent, "not on the loop's thread") }

  /// The loop as an actor's executor.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

  /// Runs `action` in this turn or a later one, when all that was queued before has run.
  public func queue(_ action: @escaping () -> Void) { shared.append(.action(action)) }

  public func queue(_ place: PlaceEntry) { shared.append(.place(place)) }

  /// Returns whether there was anything to run.
  private func runShared() -> Bool {
    guard let first = shared.next() else { return false }
    let end = preciseNow + SharedTime.inTurn
    var item = first
    while true {
      item.run()
      // What an action resumes is part of it.
      runJobs()
      guard preciseNow < end, let next = shared.next() else { return true }
      item = next
    }
  }

  private func runJobs() {
    while !jobs.isEmpty {
      var batch: [UnownedJob] = []
      swap(&batch, &jobs)
      for job in batch {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
      }
    }
  }

  private func armTimer() {
    guard let earliest = timers.earliest else { return }
    if let armedDeadline, armedDeadline <= earliest { return }
    let delay = max(0, earliest.nanoseconds - BootInstant.now.nanoseconds)
    var interval = timeval(tv_sec: Int(delay / 1_000_000_000), tv_usec: Int((delay % 1_000_000_000 + 999) / 1000))
    event_add(timerEvent, &interval)
    armedDeadline = earliest
  }

  /// libevent's clock may be slightly ahead of ours: the next turn sets the timer again for what is not due yet.
  fileprivate func timerDidEnd() { armedDeadline = nil }

  fileprivate func didWake() {
    var count: eventfd_t = 0
    eventfd_read(wakeDescriptor, &count)
    // Cleared before the queues are read, so that later submissions wake the loop again.
    _ = wakePending.exchange(false, ordering: .acquiringAndReleasing)
    var taken = Inbox()
    inbox.withLock { swap(&$0, &taken) }
    jobs.append(contentsOf: taken.jobs)
    for action in taken.actions { action() }
  }
}

private func loopDidWake(_: Int32, _: Int16, _ context: UnsafeMutableRawPointer?) {
  Unmanaged<EventLoop>.fromOpaque(context!).takeUnretainedValue().didWake()
}

/// Only ends the wait: the turn itself fires the timers.
private func loopTimerDue(_: Int32, _: Int16, _ context: UnsafeMutableRawPointer?) {
  Unmanaged<EventLoop>.fromOpaque(context!).takeUnretainedValue().timerDidEnd()
}
