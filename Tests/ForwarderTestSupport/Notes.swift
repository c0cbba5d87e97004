// Notes.swift -- remembers what a person would be told.

import Synchronization

/// Lines for a person, from whatever thread.
final class Notes: Sendable {
  private let lines = Mutex<[String]>([])
  var all: [String] { lines.withLock { $0 } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
