// Deadline.swift -- everything here is bounded in time.

import Foundation
import Testing

/// A moment at which a test stops waiting.
struct Deadline {
  private let instant: ContinuousClock.Instant

  init(_ duration: Duration) { instant = .now + duration }

  var remaining: Duration { max(.zero, instant - .now) }
  var isOver: Bool { instant <= .now }
  /// Whole milliseconds, rounded up: what `poll` takes.
  var milliseconds: Int32 {
    let (seconds, attoseconds) = remaining.components
    return Int32(clamping: seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
  }
  /// The same moment for Foundation.
  var date: Date { Date(timeIntervalSinceNow: Double(milliseconds) / 1_000) }
}

/// A test that cannot go on, and why.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// Polls until `condition` returns a value, for changes that cause no event.
@discardableResult
func eventually<Value>(
  _ what: String, within duration: Duration = .seconds(5), _ condition: () throws -> Value?
) throws -> Value {
  let deadline = Deadline(duration)
  while true {
    if let value = try condition() { return value }
    guard !deadline.isOver else { throw Failure("not within \(duration): \(what)") }
    usleep(10_000)
  }
}

/// How long `body` took, with what it returned.
func timed<Value>(_ body: () throws -> Value) rethrows -> (value: Value, duration: Duration) {
  let start = ContinuousClock.now
  let value = try body()
  return (value, .now - start)
}
