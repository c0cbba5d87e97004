// OwnedTimer.swift -- a timer that lives and ends with the object that has it.
//
// The loop's heap holds what a timer has set, and not the timer. So an object that sets its own timer needs neither to cancel
// it in `deinit` nor to fear that it is called afterwards.

/// One action at one time. Setting it again, cancelling it, or releasing it takes back what was set before. Loop thread only.
public final class OwnedTimer {
  private let entry = TimerEntry()
  /// The heap that the entry was put into last.
  private var heap: TimerHeap?

  public init() {}

  deinit {
    // A loop may call a timer while another thread releases it.
    if isSet { heap?.assertCurrent() }
    heap?.remove(entry)
  }

  /// Whether it will fire.
  public var isSet: Bool { entry.action != nil }

  /// The time at which it fires; nil if it is not set.
  public var deadline: BootInstant? { isSet ? entry.deadline : nil }

  /// Runs `action` on the loop at `deadline`, or in the next turn if that has passed.
  ///
  /// - Complexity: O(log n) in the number of timers.
  public func set(at deadline: BootInstant, on loop: any Loop, _ action: @escaping () -> Void) {
    loop.assertCurrent()
    heap?.remove(entry)
    let timers = loop.timers
    heap = timers
    timers.insert(entry, at: deadline, on: loop, action)
  }

  /// Runs `action` on the loop after `delay`.
  public func set(after delay: Duration, on loop: any Loop, _ action: @escaping () -> Void) {
    set(at: loop.now + delay, on: loop, action)
  }

  /// Runs `action` on the loop at `deadline` with the object that has this timer as a property of its own.
  public func set<Owner: AnyObject>(
    at deadline: BootInstant, on loop: any Loop, for owner: Owner, _ action: @escaping (Owner) -> Void
  ) {
    // The owner's end is the timer's.
    set(at: deadline, on: loop) { [unowned owner] in action(owner) }
  }

  /// Runs `action` on the loop after `delay` with the object that has this timer as a property of its own.
  public func set<Owner: AnyObject>(
    after delay: Duration, on loop: any Loop, for owner: Owner, _ action: @escaping (Owner) -> Void
  ) {
    set(at: loop.now + delay, on: loop, for: owner, action)
  }

  /// Takes back what was set; no effect if nothing is.
  ///
  /// - Complexity: O(log n)
  public func cancel() {
    heap?.assertCurrent()
    heap?.remove(entry)
  }
}

/// Any number of timers that end with the object that has them. Loop thread only.
public final class TimerGroup {
  private var timers: [OwnedTimer] = []
  /// The number of timers at which those that have fired are removed.
  private var limit = TimerGroup.least

  private static let least = 16

  public init() {}

  /// Runs `action` on the loop after `delay`, beside what was added before.
  public func add(after delay: Duration, on loop: any Loop, _ action: @escaping () -> Void) {
    add(at: loop.now + delay, on: loop, action)
  }

  /// Runs `action` on the loop at `deadline`, beside what was added before.
  public func add(at deadline: BootInstant, on loop: any Loop, _ action: @escaping () -> Void) {
    if timers.count >= limit {
      timers.removeAll { !$0.isSet }
      limit = max(TimerGroup.least, 2 * timers.count)
    }
    let timer = OwnedTimer()
    timer.set(at: deadline, on: loop, action)
    timers.append(timer)
  }
}
