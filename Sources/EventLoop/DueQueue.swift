// DueQueue.swift -- orders entries by the time at which they are due: a binary heap.
//
// Pure: the caller passes in the clock, in nanoseconds.

/// Due times of entries, earliest first.
///
/// Elements leave the queue only when they are due: an element whose entry has been replaced or removed is *outdated*.
/// The owner notices that at the due time (the entry stores its own due time) and drops the element. It calls
/// `sweep(keeping:)` or `compact(keeping:)` when `isCrowded` reports that too many have piled up.
///
/// An element takes 16 octets, and the capacity is at most half as large again. While the queue moves to a new buffer,
/// both exist: it then takes at most 42 octets per element, and 56 per entry with the outdated elements that
/// `isCrowded` lets pile up before and during a sweep.
public struct DueQueue: Sendable {
  /// When an entry is due.
  public struct Element: Hashable, Sendable {
    /// The due time, in nanoseconds of the caller's clock.
    public let due: Int64
    /// Identifies the entry to the owner.
    public let ticket: UInt64

    /// `due` is in nanoseconds.
    @inlinable
    public init(due: Int64, ticket: UInt64) {
      self.due = due
      self.ticket = ticket
    }

    /// Whether this element comes first. Equal due times have an order too, so that a simulation is reproducible.
    @inlinable
    func isBefore(_ other: Element) -> Bool { due != other.due ? due < other.due : ticket < other.ticket }
  }

  /// No element comes before its parent, which is at index (i − 1) / 2.
  @usableFromInline var heap: [Element] = []

  /// The smallest capacity.
  @usableFromInline static var leastCapacity: Int { 64 }

  /// The number of elements that makes the queue crowded.
  @usableFromInline var crowd = DueQueue.leastCrowd

  /// Where a sweep goes on; what is before has been looked at.
  private var swept = 0

  /// Elements that a sweep looks at in one call.
  private static let sweepLength = 16

  /// The smallest such number.
  private static let leastCrowd = 1024

  /// Allocates nothing.
  public init() {}

  /// The number of elements, including outdated ones.
  @inlinable
  public var count: Int { heap.count }

  /// When the next element is due; nil if the queue is empty.
  @inlinable
  public var earliestDue: Int64? { heap.first?.due }

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

  /// Calls `body` with each element, in no particular order.
  public func forEach(_ body: (Element) -> Void) { heap.forEach(body) }

  /// Removes and returns the earliest element if it is due.
  ///
  /// - Complexity: O(log *n*).
  @inlinable
  public mutating func popFirst(dueBy now: Int64) -> Element? {
    guard let first = heap.first, first.due <= now, let last = heap.popLast() else { return nil }
    if !heap.isEmpty {
      var slots = heap.mutableSpan
      DueQueue.place(last, at: 0, in: &slots)
    }
    if heap.count < heap.capacity / 3 * 2 { shrink() }
    return first
  }

  /// Whether the queue holds a quarter more elements than the last `compact(keeping:)` left, so that another one pays off.
  @inlinable
  public var isCrowded: Bool { heap.count >= crowd }

  /// Drops some elements for which `isLive` returns false. To be called before each `insert` while the queue is crowded: the
  /// calls together look at all elements, each at a few, since 100,000 at once take 40 ms.
  ///
  /// - Complexity: O(log *n*).
  /// - Returns: whether the last element has been looked at.
  public mutating func sweep(keeping isLive: (Element) -> Bool) -> Bool {
    var looks = DueQueue.sweepLength
    while swept < heap.count {
      guard looks > 0 else { return false }
      looks -= 1
      if isLive(heap[swept]) {
        swept += 1
      } else if swept + 1 < heap.count, let last = heap.last, !isLive(last) {
        // What takes the place of a dropped element may move to the front, and must not be outdated itself.
        heap.removeLast()
      } else {
        // A child may move up to here.
        remove(at: swept)
      }
    }
    swept = 0
    if heap.count < heap.capacity / 3 * 2 { shrink() }
    crowd = max(DueQueue.leastCrowd, heap.count + heap.count / 4)
    return true
  }

  private mutating func remove(at index: Int) {
    guard let last = heap.popLast(), index < heap.count else { return }
    var slots = heap.mutableSpan
    var hole = index
    while hole > 0, last.isBefore(slots[(hole - 1) / 2]) {
      slots[hole] = slots[(hole - 1) / 2]
      hole = (hole - 1) / 2
    }
    DueQueue.place(last, at: hole, in: &slots)
  }

  /// Drops the elements for which `isLive` returns false.
  ///
  /// - Complexity: O(*n*), with one call per element.
  public mutating func compact(keeping isLive: (Element) -> Bool) {
    heap.removeAll { !isLive($0) }
    var slots = heap.mutableSpan
    var index = slots.count / 2
    while index > 0 {
      index -= 1
      DueQueue.place(slots[index], at: index, in: &slots)
    }
    if heap.count < heap.capacity / 3 * 2 { shrink() }
    crowd = max(DueQueue.leastCrowd, heap.count + heap.count / 4)
  }

  /// Sifts an element down from the free slot `start`, past the children that come before it.
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

  /// Doubling, the default of arrays, would need 48 octets per element during the copy; growth by a quarter needs 36.
  @usableFromInline
  mutating func grow() {
    heap.reserveCapacity(max(DueQueue.leastCapacity, heap.count + heap.count / 4))
  }

  @usableFromInline
  mutating func shrink() {
    let wanted = max(DueQueue.leastCapacity, heap.count + heap.count / 8)
    guard wanted < heap.capacity else { return }
    var moved: [Element] = []
    moved.reserveCapacity(wanted)
    moved.append(contentsOf: heap)
    heap = moved
  }
}
