// OnLoop.swift -- runs the body of a test as a task on a real loop, for a bounded time.

import EventLoop
import Glibc

public struct TestTookTooLong: Error {
  public init() {}
}

/// Runs `body` as a task on a fresh loop, for a bounded time.
public func onLoop(_ body: @escaping (EventLoop) async throws -> Void) throws {
  // OpenSSL writes to sockets without MSG_NOSIGNAL; the daemon ignores the signal as well.
  signal(SIGPIPE, SIG_IGN)
  let loop = try EventLoop()
  var result: Result<Void, any Error>?
  loop.startTask {
    do {
      try await body(loop)
      result = .success(())
    } catch {
      result = .failure(error)
    }
    loop.stop()
  }
  stop(loop, at: .now + .seconds(60))
  loop.run()
  guard let result else { throw TestTookTooLong() }
  try result.get()
}

/// Stops the loop at that time, also if a test has its timers fire earlier.
private func stop(_ loop: EventLoop, at end: BootInstant) {
  loop.schedule(at: max(end, .now)) { if BootInstant.now >= end { loop.stop() } else { stop(loop, at: end) } }
}
