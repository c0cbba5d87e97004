// Schedule.swift -- timers of tests, which need no owner.

import EventLoop

extension Loop {
  /// Runs `action` on the loop at `deadline`, or in the next turn if that has passed, unless the timer is cancelled.
  @discardableResult
  public func schedule(at deadline: BootInstant, _ action: @escaping () -> Void) -> OwnedTimer {
    let timer = OwnedTimer()
    timer.set(at: deadline, on: self) { withExtendedLifetime(timer, action) }
    return timer
  }

  /// Runs `action` on the loop after `delay`, unless the timer is cancelled.
  @discardableResult
  public func schedule(after delay: Duration, _ action: @escaping () -> Void) -> OwnedTimer {
    schedule(at: now + delay, action)
  }
}
