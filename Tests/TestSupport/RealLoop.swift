// RealLoop.swift -- what a test does on a real loop or thread instead of letting time pass: it waits for events, or skips time.
//
// Nothing in a unit test sleeps (Scripts/check-files sees to it): what happens is waited for here, with an upper limit, and
// that nothing happens is shown by what is due being fired at once.

import EventLoop
import Glibc

extension EventLoop {
  /// Waits for a change without an event; to be called from a task on this loop.
  ///
  /// - Returns: false where `condition` does not hold within the limit.
  public func until(
    _ limit: Duration = .seconds(20), every interval: Duration = .milliseconds(1), _ condition: () async -> Bool
  ) async -> Bool {
    let end = now + limit
    while await !condition() {
      guard now < end else { return false }
      await sleep(for: interval)
    }
    return true
  }

  /// Handles every event that is there already; to be called from a task on this loop.
  public func turn() async { for _ in 0..<2 { await sleep(for: .zero) } }

  /// Fires what is due within `duration`, as if that time had passed; the clock stands where it is.
  public func skip(_ duration: Duration) { timers.fire(now: now + duration) }
}

/// Waits for a change on another thread without an event.
///
/// - Returns: false where `condition` does not hold within the limit.
public func comes(within limit: Duration = .seconds(20), _ condition: () -> Bool) -> Bool {
  let end = BootInstant.now + limit
  while !condition() {
    guard BootInstant.now < end else { return false }
    usleep(1000)
  }
  return true
}

/// What a step takes on the busiest machine at most: where it took more, it waited for something that it should not.
public let longestStep = Duration.seconds(10)
