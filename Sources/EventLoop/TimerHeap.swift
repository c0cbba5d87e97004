// TimerHeap.swift -- the timers of one loop, the earliest first.
//
// Loop thread only. A cancelled timer leaves the heap at once, so the heap holds only pending timers.

/// An action with a deadline. Owned by the heap until it fires or is cancelled.
public final class LoopTimer {
  /// The time at which the action is due.
  public let deadline: BootInstant
  fileprivate let sequence: UInt64
  fileprivate var position: Int
  /// The position of a timer that fires in the current turn.
  fileprivate static let offHeap = -1
  fileprivate var action: (() -> Void)?
  private weak var heap: TimerHeap?

  fileprivate init(
    deadline: BootInstant, sequence: UInt64, position: Int, heap: TimerHeap, action: @escaping () -> Void
  ) {
    self.deadline = deadline
    self.sequence = sequence
    self.position = position
    self.heap = heap
    self.action = action
  }

  /// Whether the timer has neither fired nor been cancelled.
  public var isPending: Bool { action != nil }

  /// Removes the timer from the heap; no effect if it has fired or was cancelled.
  ///
  /// - Complexity: O(log n)
  public func cancel() {
    guard action != nil else { return }
    action = nil
    if position != LoopTimer.offHeap { heap?.remove(at: position) }
  }

  fileprivate func isBefore(_ other: LoopTimer) -> Bool {
    deadline != other.deadline ? deadline < other.deadline : sequence < other.sequence
  }
}

/// A binary heap of timers; equal deadlines fire in the order in which they were set.
public final class TimerHeap {
  private var heap: [LoopTimer] = []
  private var nextSequence: UInt64 = 0

  /// Creates an empty heap.
  public init() {}

  /// The earliest deadline; nil if there is no timer.
  public var earliest: BootInstant? { heap.first?.deadline }

  /// The number of pending timers.
  public var count: Int { heap.count }

  func insert(deadline: BootInstant, _ action: @escaping () -> Void) -> LoopTimer {
    let timer = LoopTimer(
      deadline: deadline, sequence: nextSequence, position: heap.count, heap: self, action: action)
    nextSequence &+= 1
    heap.append(timer)
    siftUp(from: heap.count - 1)
    return timer
  }

  /// Fires every timer that is due at `now`. Timers that actions set fire in a later call, even if they are due already.
  public func fire(now: BootInstant) {
    // All due timers are removed first, so that a timer that an action sets in the past does not overtake them.
    var due: [LoopTimer] = []
    while let first = heap.first, first.deadline <= now {
      remove(at: 0)
      first.position = LoopTimer.offHeap
      due.append(first)
    }
    for timer in due {
      let action = timer.action
      timer.action = nil
      action?()
    }
  }

  /// Removes the earliest timer and returns its action, for simulated loops that jump from one timer to the next.
  public func popEarliest() -> (deadline: BootInstant, action: () -> Void)? {
    guard let first = heap.first, let action = first.action else { return nil }
    first.action = nil
    remove(at: 0)
    return (first.deadline, action)
  }

  fileprivate func remove(at position: Int) {
    let last = heap.removeLast()
    guard position < heap.count else { return }
    heap[position] = last
    last.position = position
    siftUp(from: position)
    siftDown(from: last.position)
  }

  private func siftUp(from start: Int) {
    var child = start
    let timer = heap[child]
    while child > 0 {
      let parent = (child - 1) / 2
      guard timer.isBefore(heap[parent]) else { break }
      heap[child] = heap[parent]
      heap[child].position = child
      child = parent
    }
    heap[child] = timer
    timer.position = child
  }

  private func siftDown(from start: Int) {
    var parent = start
    let timer = heap[parent]
    while true {
      var child = 2 * parent + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
      guard heap[child].isBefore(timer) else { break }
      heap[parent] = heap[child]
      heap[parent].position = parent
      parent = child
    }
    heap[parent] = timer
    timer.position = parent
  }
}
