// Waiters.swift -- tasks that wait for the same event, each with its own timeout.
//
// Resolver's loop only.

import EventLoop

/// The tasks that wait for one event.
final class Waiters {
  private let loop: any Loop
  /// Those that wait, in the order in which they came.
  private var waiting: [Waiter] = []

  init(on loop: any Loop) { self.loop = loop }

  /// How many wait.
  var count: Int { waiting.count }

  /// Suspends until `resumeAll` is called or the timeout expires; not at all if `isNeeded` is false.
  ///
  /// The event may come after the caller's own look: optimised code may give the loop to other tasks before a call begins.
  func wait(atMost timeout: Duration, while isNeeded: () -> Bool) async {
    loop.assertCurrent()
    await withCheckedContinuation { continuation in
      guard isNeeded() else { return continuation.resume() }
      let waiter = Waiter(continuation)
      waiting.append(waiter)
      waiter.timer.set(after: timeout, on: loop) { [weak self] in
        self?.waiting.removeAll { $0 === waiter }
        waiter.resume()
      }
    }
  }

  func resumeAll() {
    loop.assertCurrent()
    let resumed = waiting
    waiting = []
    for waiter in resumed { waiter.resume() }
  }
}

private final class Waiter {
  let timer = OwnedTimer()
  private var continuation: CheckedContinuation<Void, Never>?

  init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = continuation }

  func resume() {
    timer.cancel()
    continuation?.resume()
    continuation = nil
  }
}
