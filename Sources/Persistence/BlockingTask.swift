// BlockingTask.swift -- runs one piece of blocking work on a thread of its own.

import EventLoop
import Glibc

/// A piece of blocking work that has started. Any thread.
public final class BlockingTask: Sendable {
  private let name: String
  private let work: @Sendable () -> Void
  nonisolated(unsafe) private let end: UnsafeMutablePointer<sem_t>

  /// Starts the work on a new thread. If no thread can be created, runs it on the calling thread.
  ///
  /// - Parameter name: the name of the thread, at most 15 octets.
  @discardableResult
  public static func start(_ name: String, _ work: @escaping @Sendable () -> Void) -> BlockingTask {
    let task = BlockingTask(name, work)
    var thread = pthread_t()
    let context = Unmanaged.passRetained(task).toOpaque()
    if pthread_create(&thread, nil, runTask, context) == 0 {
      pthread_detach(thread)
    } else {
      Unmanaged<BlockingTask>.fromOpaque(context).release()
      task.run()
    }
    return task
  }

  /// Runs work on a new thread and returns its value to a task that prefers the loop. A simulated loop has no other thread:
  /// there the calling task does the work.
  public static func value<Value: Sendable>(
    _ name: String, on loop: any Loop, _ work: @escaping @Sendable () -> Value
  ) async -> Value {
    guard let loop = loop as? EventLoop else { return work() }
    return await withUnsafeContinuation { continuation in
      start(name) {
        let value = work()
        loop.execute { continuation.resume(returning: value) }
      }
    }
  }

  private init(_ name: String, _ work: @escaping @Sendable () -> Void) {
    self.name = name
    self.work = work
    end = .allocate(capacity: 1)
    sem_init(end, 0, 0)
  }

  deinit {
    sem_destroy(end)
    end.deallocate()
  }

  fileprivate func nameThread() { pthread_setname_np(pthread_self(), name) }

  fileprivate func run() {
    work()
    sem_post(end)
  }

  /// Waits for the end of the work; returns false if that does not come in time.
  public func wait(atMost limit: Duration) -> Bool {
    var deadline = timespec()
    clock_gettime(CLOCK_MONOTONIC, &deadline)
    let (seconds, attoseconds) = limit.components
    deadline.tv_sec += Int(seconds)
    deadline.tv_nsec += Int(attoseconds / 1_000_000_000)
    if deadline.tv_nsec >= 1_000_000_000 {
      deadline.tv_sec += 1
      deadline.tv_nsec -= 1_000_000_000
    }
    while sem_clockwait(end, CLOCK_MONOTONIC, &deadline) != 0 {
      guard errno == EINTR else { return false }
    }
    // Lets the next waiter through, too.
    sem_post(end)
    return true
  }
}

private func runTask(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  let task = Unmanaged<BlockingTask>.fromOpaque(context!).takeRetainedValue()
  task.nameThread()
  task.run()
  return nil
}
