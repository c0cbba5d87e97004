// Waiters.swift -- those who wait for something that is under way, each until a time of their own.
//
// Resolver's loop only.

import EventLoop

/// Who waits for one thing.
final class Waiters {
  private let loop: any Loop
  private var waiting: [Waiter] = []

  init(on loop: any Loop) { self.loop = loop }

  /// Returns when `resumeAll` is called, or after that time.
  func wait(atMost timeout: Duration) async {
    await withCheckedContinuation { continuation in
      let waiter = Waiter(continuation)
      waiter.timer = loop.schedule(after: timeout) { waiter.resume() }
      waiting.append(waiter)
    }
  }

  /// Lets everybody go on.
  func resumeAll() {
    for waiter in waiting { waiter.resume() }
    waiting = []
  }
}

private final class Waiter {
  var timer: LoopTimer?
  private var continuation: CheckedContinuation<Void, Never>?

  init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = continuation }

  func resume() {
    timer?.cancel()
    continuation?.resume()
    continuation = nil
  }
}
