// CPUTime.swift -- how long something keeps a thread busy, for tests of work that must not be the square of its input.

import EventLoop
import Glibc
import Synchronization

/// The CPU time of this thread so far, in nanoseconds.
private func cpuTimeNow() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The CPU time of this thread that something takes, in nanoseconds: the least of three measurements on a busy machine.
public func cpuTime(_ body: () throws -> Void) rethrows -> Int {
  var least = Int.max
  for _ in 0..<3 {
    let begin = cpuTimeNow()
    try body()
    least = min(least, cpuTimeNow() - begin)
  }
  return least
}

/// The longest CPU time of one turn of a loop.
public final class TurnWatch: Sendable {
  private let seen = Mutex<(last: Int?, longest: Int)>((nil, 0))

  /// The longest one since `watch`.
  public var longest: Duration { .nanoseconds(seen.withLock { $0.longest }) }

  /// Creates a watch that sees nothing yet.
  public init() {}

  /// Begins to watch.
  public func watch(_ loop: EventLoop) {
    loop.everyTurn { [self] in
      let now = cpuTimeNow()
      seen.withLock {
        if let last = $0.last { $0.longest = max($0.longest, now - last) }
        $0.last = now
      }
    }
  }
}
