// CPUTime.swift -- how long something keeps a thread busy, for tests of work that must not be the square of its input.

import Glibc

/// The CPU time of this thread that something takes, in nanoseconds: the least of three measurements on a busy machine.
public func cpuTime(_ body: () throws -> Void) rethrows -> Int {
  func now() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }
  var least = Int.max
  for _ in 0..<3 {
    let begin = now()
    try body()
    least = min(least, now() - begin)
  }
  return least
}
