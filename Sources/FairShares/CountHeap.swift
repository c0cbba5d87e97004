// CountHeap.swift -- a heap of elements by their counts, in which each element knows its position.

/// An element with a count. In at most one heap at a time.
class Counted {
  fileprivate(set) var count = 0
  fileprivate var position = -1
}

/// A binary heap with the largest count on top. Counts change by one.
///
/// - Complexity: O(log n) for a change, O(1) for the top.
struct CountHeap<Element: Counted> {
  private var elements: [Element] = []
  /// Comparisons so far, for tests.
  private(set) var steps = 0

  /// The element with the largest count.
  var top: Element? { elements.first }

  var isEmpty: Bool { elements.isEmpty }

  /// Increments an element's count; inserts the element if it was 0.
  mutating func add(_ element: Element) {
    element.count += 1
    if element.count == 1 {
      element.position = elements.count
      elements.append(element)
    }
    siftUp(element.position)
  }

  /// Decrements an element's count; removes the element at 0.
  mutating func remove(_ element: Element) {
    element.count -= 1
    siftDown(element.position)
    guard element.count == 0 else { return }
    let place = element.position
    element.position = -1
    let last = elements.removeLast()
    guard last !== element else { return }
    elements[place] = last
    last.position = place
    siftUp(place)
    siftDown(last.position)
  }

  private mutating func siftUp(_ start: Int) {
    var child = start
    while child > 0 {
      let parent = (child - 1) / 2
      steps += 1
      guard elements[parent].count < elements[child].count else { return }
      swap(parent, child)
      child = parent
    }
  }

  private mutating func siftDown(_ start: Int) {
    var parent = start
    while true {
      var child = 2 * parent + 1
      guard child < elements.count else { return }
      if child + 1 < elements.count, elements[child + 1].count > elements[child].count { child += 1 }
      steps += 1
      guard elements[child].count > elements[parent].count else { return }
      swap(parent, child)
      parent = child
    }
  }

  private mutating func swap(_ left: Int, _ right: Int) {
    elements.swapAt(left, right)
    elements[left].position = left
    elements[right].position = right
  }
}
