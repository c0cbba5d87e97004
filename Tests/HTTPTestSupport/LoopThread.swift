// LoopThread.swift -- runs a real loop on a thread of its own while a test talks to it over sockets.

import EventLoop
import Glibc

/// A thread that runs a loop. What was made on the loop before may be touched by the test again after `join`.
public final class LoopThread {
  private let loop: EventLoop
  private var thread = pthread_t()
  private var isRunning = true

  /// Starts to run `loop`.
  public init(running loop: EventLoop) {
    self.loop = loop
    let context = Unmanaged.passRetained(loop).toOpaque()
    let outcome = pthread_create(&thread, nil, runLoop, context)
    precondition(outcome == 0, "no thread: \(outcome)")
  }

  deinit { join() }

  /// Stops the loop and waits for its last turn.
  public func join() {
    guard isRunning else { return }
    isRunning = false
    loop.stop()
    pthread_join(thread, nil)
  }
}

private func runLoop(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  Unmanaged<EventLoop>.fromOpaque(context!).takeRetainedValue().run()
  return nil
}
