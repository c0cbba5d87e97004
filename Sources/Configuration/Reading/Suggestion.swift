// Suggestion.swift -- finds the known key that an unknown one was probably meant to be.

/// The candidate that differs least from the key; nil if it takes more than two edits, or half of the key or more.
package func closest(to key: String, among candidates: some Sequence<String>) -> String? {
  // A longer key is not a typing mistake, and the comparison is quadratic.
  guard key.utf8.count <= 40 else { return nil }
  let similar = candidates.filter { abs($0.utf8.count - key.utf8.count) <= 2 }
  let distances = similar.map { (name: $0, distance: editDistance(Array(key.utf8), Array($0.utf8))) }
  guard let best = distances.min(by: { $0.distance < $1.distance }) else { return nil }
  return best.distance <= 2 && best.distance * 2 < key.utf8.count ? best.name : nil
}

/// The number of insertions, deletions, replacements and swaps of neighbours between two texts.
private func editDistance(_ left: [UInt8], _ right: [UInt8]) -> Int {
  var twoBack: [Int] = []
  var previous = Array(0...right.count)
  for row in 0..<left.count {
    var current = [row + 1]
    for column in 0..<right.count {
      var best = min(previous[column + 1], current[column]) + 1
      best = min(best, previous[column] + (left[row] == right[column] ? 0 : 1))
      if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
        best = min(best, twoBack[column - 1] + 1)
      }
      current.append(best)
    }
    (twoBack, previous) = (previous, current)
  }
  return previous[right.count]
}
