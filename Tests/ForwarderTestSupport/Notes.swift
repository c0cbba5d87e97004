// Notes.swift -- records the lines that would be logged.

import Synchronization

/// Log lines, from any thread.
final class Notes: Sendable {
  private let lines = Mutex<[String]>([])
  var all: [String] { lines.withLock { $0 } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
