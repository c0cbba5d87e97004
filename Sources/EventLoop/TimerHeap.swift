// TimerHeap.swift -- what is to happen on one loop, the earliest first.
//
// Loop thread only. What is cancelled leaves the heap at once, so the heap holds only what is pending.

/// An action with a deadline.
final class TimerEntry: Ranked {
  /// Nil unless it is pending.
  fileprivate(set) var action: (() -> Void)?
  fileprivate(set) var deadline = BootInstant(nanoseconds: .max)
  fileprivate var sequence: UInt64 = 0
  /// Negative outside the heap, also while it fires.
  var position = -1

  func precedes(_ other: TimerEntry) -> Bool {
    deadline != other.deadline ? deadline < other.deadline : sequence < other.sequence
  }

  /// Returns the action, which runs once.
  fileprivate func takeAction() -> (() -> Void)? {
    defer { action = nil }
    return action
  }
}

/// A heap; equal deadlines fire in the order in which they were set.
public final class TimerHeap {
  private var heap = RankedHeap<TimerEntry>()
  private var nextSequence: UInt64 = 0
  #if DEBUG
    /// The loop that fires them, for assertions; nil before the first one. A release does without, since every retain of an
    /// object that was ever referenced weakly is slow.
    private weak var loop: (any Loop)?
  #endif

  public init() {}

  /// The earliest deadline; nil if no action is pending.
  public var earliest: BootInstant? { heap.first?.deadline }

  /// The number of actions that are pending.
  public var count: Int { heap.count }

  /// Adds an entry that is not pending.
  func insert(_ entry: TimerEntry, at deadline: BootInstant, on loop: any Loop, _ action: @escaping () -> Void) {
    #if DEBUG
      if self.loop == nil { self.loop = loop }
    #endif
    entry.action = action
    entry.deadline = deadline
    entry.sequence = nextSequence
    nextSequence &+= 1
    heap.insert(entry)
  }

  /// Traps in a debug build if the caller is not on the loop that fires them.
  func assertCurrent(_ function: StaticString = #function, file: StaticString = #fileID, line: UInt = #line) {
    #if DEBUG
      loop?.assertCurrent(function, file: file, line: line)
    #endif
  }

  /// Takes back what an entry has; no effect if it is not pending.
  func remove(_ entry: TimerEntry) {
    if entry.position >= 0 { heap.remove(entry) }
    entry.action = nil
  }

  /// Fires what is due at `now`. What actions set fires in a later call, even if it is due already.
  public func fire(now: BootInstant) {
    // All that is due is removed first, so that what an action sets in the past does not overtake it.
    var due: [TimerEntry] = []
    while let first = heap.first, first.deadline <= now {
      heap.remove(first)
      due.append(first)
    }
    // An action may have cancelled another one, or set it again.
    for entry in due where entry.position < 0 { entry.takeAction()?() }
  }

  /// Removes the earliest entry and returns its action, for simulated loops that jump from one timer to the next.
  public func popEarliest() -> (deadline: BootInstant, action: () -> Void)? {
    guard let first = heap.first else { return nil }
    heap.remove(first)
    return first.takeAction().map { (first.deadline, $0) }
  }
}
