// RefreshQueue.swift -- which entry is looked at next: a binary heap of due times.
//
// Pure: driven by a clock that is passed in, in nanoseconds.

/// Due times with what they are for, the earliest first.
///
/// Nothing is taken out before it is due: an element whose entry was replaced or is gone meanwhile is *outdated*. Its
/// owner notices that when it is due (the entry remembers when it is to be looked at) and drops it, and calls
/// `compact(keeping:)` when `isCrowded(live:)` says that too many have piled up.
///
/// An element takes 16 octets, and there is room for half as many again at most. While the queue moves from one room to
/// another, both exist: then it takes at most 42 octets for each element, and 53 for each entry with the outdated
/// elements that `isCrowded(live:)` lets pile up.
public struct RefreshQueue: Sendable {
  /// When something is to be looked at.
  public struct Element: Hashable, Sendable {
    /// Nanoseconds of the clock.
    public let due: Int64
    /// What the owner finds the entry by.
    public let ticket: UInt64

    /// Such an element.
    @inlinable
    public init(due: Int64, ticket: UInt64) {
      self.due = due
      self.ticket = ticket
    }

    /// Whether this one comes first. What is due at the same time has an order too, so that a simulation repeats.
    @inlinable
    func isBefore(_ other: Element) -> Bool { due != other.due ? due < other.due : ticket < other.ticket }
  }

  /// No element comes before its parent, which is at half its index.
  @usableFromInline var heap: [Element] = []

  /// Elements for which there is always room.
  @usableFromInline static var leastCapacity: Int { 64 }

  /// An empty queue.
  public init() {}

  /// Elements, the outdated ones included.
  @inlinable
  public var count: Int { heap.count }

  /// When the next element is due; nil where there is none.
  @inlinable
  public var earliestDue: Int64? { heap.first?.due }

  /// What the elements have room in, in octets.
  public var reservedOctets: Int { heap.capacity * MemoryLayout<Element>.stride }

  /// Adds an element. The same ticket may be in the queue several times.
  ///
  /// - Complexity: O(log *n*) at most, O(1) on average for random due times.
  @inlinable
  public mutating func insert(_ ticket: UInt64, due: Int64) {
    if heap.count == heap.capacity { grow() }
    let element = Element(due: due, ticket: ticket)
    heap.append(element)
    var slots = heap.mutableSpan
    var hole = slots.count - 1
    while hole > 0 {
      let parent = (hole - 1) / 2
      guard element.isBefore(slots[parent]) else { break }
      slots[hole] = slots[parent]
      hole = parent
    }
    slots[hole] = element
  }

  /// Calls `body` with each element, in no order.
  public func forEach(_ body: (Element) -> Void) { heap.forEach(body) }

  /// Takes the earliest element if it is due.
  ///
  /// - Complexity: O(log *n*).
  @inlinable
  public mutating func popFirst(dueBy now: Int64) -> Element? {
    guard let first = heap.first, first.due <= now, let last = heap.popLast() else { return nil }
    if !heap.isEmpty {
      var slots = heap.mutableSpan
      RefreshQueue.place(last, at: 0, in: &slots)
    }
    if heap.count < heap.capacity / 3 * 2 { shrink() }
    return first
  }

  /// Takes everything that is due, in its order.
  ///
  /// Unlike a loop around `popFirst(dueBy:)` this ends whatever is inserted while the result is worked off.
  ///
  /// - Complexity: O(*k* log *n*) for *k* elements that are due.
  public mutating func popAll(dueBy now: Int64) -> [Element] {
    var taken: [Element] = []
    while let element = popFirst(dueBy: now) { taken.append(element) }
    return taken
  }

  /// Whether a quarter more elements than live entries are in the queue, so that `compact(keeping:)` is worth its time.
  ///
  /// - Parameter live: entries that are waiting to be looked at.
  @inlinable
  public func isCrowded(live: Int) -> Bool { count > live + live / 4 + RefreshQueue.leastCapacity }

  /// Drops the elements for which `isLive` says no.
  ///
  /// - Complexity: O(*n*), with one call for each element.
  public mutating func compact(keeping isLive: (Element) -> Bool) {
    heap.removeAll { !isLive($0) }
    var slots = heap.mutableSpan
    var index = slots.count / 2
    while index > 0 {
      index -= 1
      RefreshQueue.place(slots[index], at: index, in: &slots)
    }
    if heap.count < heap.capacity / 3 * 2 { shrink() }
  }

  /// Puts an element below the children that come before it, from the slot `start` on, which is free.
  @inlinable
  static func place(_ element: Element, at start: Int, in slots: inout MutableSpan<Element>) {
    var hole = start
    var child = 2 * hole + 1
    while child < slots.count {
      if child + 1 < slots.count, slots[child + 1].isBefore(slots[child]) { child += 1 }
      guard slots[child].isBefore(element) else { break }
      slots[hole] = slots[child]
      hole = child
      child = 2 * hole + 1
    }
    slots[hole] = element
  }

  /// Doubling, as arrays do by themselves, would need 48 octets for each element while it copies; a quarter more needs
  /// 36.
  @usableFromInline
  mutating func grow() {
    heap.reserveCapacity(max(RefreshQueue.leastCapacity, heap.count + heap.count / 4))
  }

  @usableFromInline
  mutating func shrink() {
    let wanted = max(RefreshQueue.leastCapacity, heap.count + heap.count / 8)
    guard wanted < heap.capacity else { return }
    var moved: [Element] = []
    moved.reserveCapacity(wanted)
    moved.append(contentsOf: heap)
    heap = moved
  }
}
