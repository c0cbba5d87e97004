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
  @usableFromInline package var steps = 0

  @inlinable public init() {}

  @inlinable public var count: Int { elements.count }

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

  @inlinable mutating func precedes(_ left: Element, _ right: Element) -> Bool {
    steps += 1
    return left.precedes(right)
  }

  @inlinable mutating func siftUp(_ start: Int) {
    let element = elements[start]
    var hole = start
    while hole > 0, precedes(element, elements[(hole - 1) / 2]) {
      put(elements[(hole - 1) / 2], at: hole)
      hole = (hole - 1) / 2
    }
    put(element, at: hole)
  }

  @inlinable mutating func siftDown(_ start: Int) {
    let element = elements[start]
    var hole = start
    while 2 * hole + 1 < elements.count {
      var child = 2 * hole + 1
      if child + 1 < elements.count, precedes(elements[child + 1], elements[child]) { child += 1 }
      guard precedes(elements[child], element) else { break }
      put(elements[child], at: hole)
      hole = child
    }
    put(element, at: hole)
  }

  @inlinable mutating func put(_ element: Element, at place: Int) {
    elements[place] = element
    element.position = place
  }
}
