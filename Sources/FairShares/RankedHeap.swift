// RankedHeap.swift -- a heap of objects, in which each one knows its position.

/// An element of a heap. In at most one heap at a time.
public protocol Ranked: AnyObject {
  /// Its index in the heap, which sets it; negative outside.
  var position: Int { get set }

  /// Whether it belongs above another one.
  func precedes(_ other: Self) -> Bool
}

/// A binary heap. What decides the order is changed first, then the heap is told.
///
/// Inlinable: generic code of another module is not specialised.
/// - Complexity: O(log n) for a change, O(1) for the first one.
public struct RankedHeap<Element: Ranked> {
  @usableFromInline var elements: [Element] = []
  /// Comparisons so far, for tests.
  @usableFromInline var steps = 0

  @inlinable public init() {}

  /// The element that no other one precedes.
  @inlinable public var first: Element? { elements.first }

  @inlinable public mutating func insert(_ element: Element) {
    element.position = elements.count
    elements.append(element)
    siftUp(element.position)
  }

  @inlinable public mutating func remove(_ element: Element) {
    let place = element.position
    element.position = -1
    let last = elements.removeLast()
    guard last !== element else { return }
    elements[place] = last
    last.position = place
    update(last)
  }

  /// Moves an element whose rank has changed.
  @inlinable public mutating func update(_ element: Element) {
    siftUp(element.position)
    siftDown(element.position)
  }

  @inlinable mutating func precedes(_ left: Int, _ right: Int) -> Bool {
    steps += 1
    return elements[left].precedes(elements[right])
  }

  @inlinable mutating func siftUp(_ start: Int) {
    var child = start
    while child > 0, precedes(child, (child - 1) / 2) {
      swap(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  @inlinable mutating func siftDown(_ start: Int) {
    var parent = start
    while 2 * parent + 1 < elements.count {
      var child = 2 * parent + 1
      if child + 1 < elements.count, precedes(child + 1, child) { child += 1 }
      guard precedes(child, parent) else { return }
      swap(child, parent)
      parent = child
    }
  }

  @inlinable mutating func swap(_ left: Int, _ right: Int) {
    elements.swapAt(left, right)
    elements[left].position = left
    elements[right].position = right
  }
}
