// TimerHeap.swift -- what is to happen on one loop, the earliest first.
//
// Loop thread only. What is cancelled leaves the heap at once, so the heap holds only what is pending.

/// An action with a deadline.
final class TimerEntry {
  /// Nil unless it is pending.
  fileprivate(set) var action: (() -> Void)?
  fileprivate(set) var deadline = BootInstant(nanoseconds: .max)
  fileprivate var sequence: UInt64 = 0
  /// Its index in the heap; `offHeap` outside, also while it fires.
  fileprivate var position = TimerEntry.offHeap
  fileprivate static let offHeap = -1

  fileprivate func isBefore(_ other: TimerEntry) -> Bool {
    deadline != other.deadline ? deadline < other.deadline : sequence < other.sequence
  }

  /// Returns the action, which runs once.
  fileprivate func takeAction() -> (() -> Void)? {
    defer { action = nil }
    return action
  }
}

/// A binary heap; equal deadlines fire in the order in which they were set.
public final class TimerHeap {
  private var heap: [TimerEntry] = []
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
    heap.append(entry)
    siftUp(from: heap.count - 1)
  }

  /// Traps in a debug build if the caller is not on the loop that fires them.
  func assertCurrent(_ function: StaticString = #function, file: StaticString = #fileID, line: UInt = #line) {
    #if DEBUG
      loop?.assertCurrent(function, file: file, line: line)
    #endif
  }

  /// Takes back what an entry has; no effect if it is not pending.
  func remove(_ entry: TimerEntry) {
    if entry.position != TimerEntry.offHeap { takeOut(entry) }
    entry.action = nil
  }

  /// Fires what is due at `now`. What actions set fires in a later call, even if it is due already.
  public func fire(now: BootInstant) {
    // All that is due is removed first, so that what an action sets in the past does not overtake it.
    var due: [TimerEntry] = []
    while let first = heap.first, first.deadline <= now {
      takeOut(first)
      due.append(first)
    }
    // An action may have cancelled another one, or set it again.
    for entry in due where entry.position == TimerEntry.offHeap { entry.takeAction()?() }
  }

  /// Removes the earliest entry and returns its action, for simulated loops that jump from one timer to the next.
  public func popEarliest() -> (deadline: BootInstant, action: () -> Void)? {
    guard let first = heap.first else { return nil }
    takeOut(first)
    return first.takeAction().map { (first.deadline, $0) }
  }

  private func takeOut(_ entry: TimerEntry) {
    let position = entry.position
    entry.position = TimerEntry.offHeap
    let last = heap.removeLast()
    guard position < heap.count else { return }
    heap[position] = last
    last.position = position
    siftUp(from: position)
    siftDown(from: last.position)
  }

  private func siftUp(from start: Int) {
    var child = start
    let entry = heap[child]
    while child > 0 {
      let parent = (child - 1) / 2
      guard entry.isBefore(heap[parent]) else { break }
      heap[child] = heap[parent]
      heap[child].position = child
      child = parent
    }
    heap[child] = entry
    entry.position = child
  }

  private func siftDown(from start: Int) {
    var parent = start
    let entry = heap[parent]
    while true {
      var child = 2 * parent + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
      guard heap[child].isBefore(entry) else { break }
      heap[parent] = heap[child]
      heap[parent].position = parent
      parent = child
    }
    heap[parent] = entry
    entry.position = parent
  }
}
