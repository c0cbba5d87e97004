// EventLoop.swift -- one thread's libevent base: events, timers, and the executor of the tasks that run on it.
//
// A turn is: wait for events and run their callbacks, fire due timers, run the jobs that have become ready.
// Only `enqueue`, `execute`, `wake` and `stop` may be called from other threads.

import CEvent
import Glibc
import Synchronization

/// Why a loop could not be made.
public struct EventLoopError: Error, CustomStringConvertible {
  /// What failed, for a person.
  public let description: String
}

/// A libevent base with a timer heap and a job queue; the serial executor of the cold path.
public final class EventLoop: Loop, @unchecked Sendable {
  /// libevent's base, for modules that make their own events on this loop; owned by the loop.
  public let base: OpaquePointer
  /// The timers of this loop.
  public let timers = TimerHeap()
  /// The time at which the present turn began: read once a turn, when it is first asked for after the wait.
  public var now: BootInstant {
    if isNowStale {
      lastRead = .now
      isNowStale = false
    }
    return lastRead
  }
  /// How many turns the loop has made; read by a watchdog on any thread.
  public let turns = Atomic<UInt64>(0)

  private var lastRead = BootInstant.now
  private var isNowStale = false
  private var jobs: [UnownedJob] = []
  /// The thread that runs turns; 0 before the first one.
  private let thread = Atomic<pthread_t>(0)
  private let inbox = Mutex<Inbox>(Inbox())
  private let wakeDescriptor: Int32
  private let wakePending = Atomic<Bool>(false)
  private let stopRequested = Atomic<Bool>(false)
  private var wakeEvent: UnsafeMutablePointer<event>?
  private var timerEvent: UnsafeMutablePointer<event>?
  private var armedDeadline: BootInstant?
  private var onTurn: (() -> Void)?
  private var onWait: (() -> Void)?

  private struct Inbox: Sendable {
    var jobs: [UnownedJob] = []
    var actions: [@Sendable () -> Void] = []
  }

  /// Makes a loop that is not yet running.
  ///
  /// - Throws: `EventLoopError` where the kernel gives no epoll or event descriptor.
  public init() throws(EventLoopError) {
    guard let base = event_base_new() else { throw EventLoopError(description: "libevent could not make a base") }
    let descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
    guard descriptor >= 0 else {
      event_base_free(base)
      throw EventLoopError(description: "no event descriptor: errno \(errno)")
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

  /// The time, read anew.
  public var preciseNow: BootInstant { BootInstant.now }

  /// Seconds since 1970 by the machine's wall clock.
  public var wallTime: Int64 { Int64(time(nil)) }

  /// Whether the caller is on the loop's thread.
  public var isCurrent: Bool { thread.load(ordering: .relaxed) == pthread_self() }

  /// Calls `action` in every turn, after events and before jobs: for queues that are filled from other threads.
  public func everyTurn(_ action: @escaping () -> Void) { onTurn = action }

  /// Calls `action` in every turn, after jobs and before the wait: for what a turn has gathered.
  public func beforeWaiting(_ action: @escaping () -> Void) { onWait = action }

  /// Runs turns on the calling thread until `stop`.
  public func run() {
    thread.store(pthread_self(), ordering: .relaxed)
    while !stopRequested.load(ordering: .acquiring) {
      runJobs()
      onWait?()
      armTimer()
      isNowStale = true
      event_base_loop(base, EVLOOP_ONCE)
      turns.wrappingAdd(1, ordering: .relaxed)
      timers.fire(now: now)
      onTurn?()
    }
    runJobs()
    onWait?()
  }

  /// Ends `run` after the present turn. May be called from any thread.
  public func stop() {
    stopRequested.store(true, ordering: .releasing)
    wake()
  }

  /// Makes the loop turn once, soon. May be called from any thread; many calls cost one wake-up.
  public func wake() {
    guard !wakePending.exchange(true, ordering: .acquiringAndReleasing) else { return }
    eventfd_write(wakeDescriptor, 1)
  }

  /// Runs `action` on the loop's thread, soon. May be called from any thread.
  public func execute(_ action: @escaping @Sendable () -> Void) {
    inbox.withLock { $0.actions.append(action) }
    wake()
  }

  /// Takes a job of a task that runs on this loop. Called by the Swift runtime from any thread.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if isCurrent {
      jobs.append(job)
    } else {
      inbox.withLock { $0.jobs.append(job) }
      wake()
    }
  }

  /// Lets an actor on this loop assume its isolation in a callback of libevent.
  public func checkIsolated() { precondition(isCurrent, "not on the loop's thread") }

  /// The loop as an actor's executor.
  public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

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

  /// libevent's clock may be a little ahead of ours: what is not due yet is waited for anew.
  fileprivate func timerDidEnd() { armedDeadline = nil }

  fileprivate func didWake() {
    var count: eventfd_t = 0
    eventfd_read(wakeDescriptor, &count)
    // Before the queues are looked into: who submits after that wakes the loop once more.
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

/// The turn itself fires timers: this event only ends the wait.
private func loopTimerDue(_: Int32, _: Int16, _ context: UnsafeMutableRawPointer?) {
  Unmanaged<EventLoop>.fromOpaque(context!).takeUnretainedValue().timerDidEnd()
}
