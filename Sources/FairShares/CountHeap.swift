// CountHeap.swift -- who has most, on top of a heap that knows where everybody stands.

/// Something with a count. One heap at a time.
class Counted {
  fileprivate(set) var count = 0
  fileprivate var position = -1
}

/// A binary heap, the largest count on top. Changes are by one.
///
/// - Complexity: O(log n) for a change, O(1) for the top.
struct CountHeap<Element: Counted> {
  private var elements: [Element] = []
  /// Comparisons so far, for tests.
  private(set) var steps = 0

  /// Who has most.
  var top: Element? { elements.first }

  var isEmpty: Bool { elements.isEmpty }

  /// The element has one more; the first one brings it here.
  mutating func add(_ element: Element) {
    element.count += 1
    if element.count == 1 {
      element.position = elements.count
      elements.append(element)
    }
    siftUp(element.position)
  }

  /// The element has one less; the last one takes it away.
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
