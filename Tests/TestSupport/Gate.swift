// Gate.swift -- holds threads of a test server until the test lets them pass.

import Glibc

/// Closed until it is opened. Who waits goes on after ten seconds, so that a test that fails also ends.
public final class Gate: @unchecked Sendable {
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  /// Creates a closed gate.
  public init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  /// Lets `count` threads pass.
  public func open(_ count: Int = 1) { for _ in 0..<count { sem_post(semaphore) } }

  /// Whether it was opened.
  @discardableResult
  public func wait() -> Bool {
    var deadline = timespec()
    clock_gettime(CLOCK_REALTIME, &deadline)
    deadline.tv_sec += 10
    while sem_timedwait(semaphore, &deadline) != 0 { if errno != EINTR { return false } }
    return true
  }
}
