// RollCall.swift -- checks once whether threads make progress, for health checks; the watchdog checks periodically.

import EventLoop

/// A single check of several threads.
public enum RollCall {
  /// The pause before the first look after a nudge: a turn takes microseconds. Later pauses grow.
  private static let firstLook = Duration.milliseconds(1)
  private static let longestPause = Duration.milliseconds(50)

  /// The names of the stuck threads, those that did not complete a turn within `patience` after a nudge. Returns early when
  /// every thread has. Call it from a task that prefers the loop.
  ///
  /// - Parameter patience: longer than the longest turn of a healthy thread.
  public static func standing(
    _ threads: [any WatchedThread], on loop: any Loop, within patience: Duration
  ) async -> [String] {
    let seen = threads.map(\.turns)
    let deadline = loop.now + patience
    var pause = firstLook
    while true {
      let standing = threads.indices.filter { threads[$0].turns == seen[$0] }.map { threads[$0] }
      guard !standing.isEmpty, loop.now < deadline else { return standing.map(\.name) }
      // A nudge just before a thread begins to wait is lost, so nudges are repeated.
      for thread in standing { thread.nudge() }
      await loop.sleep(for: min(pause, deadline - loop.now))
      pause = min(pause * 2, longestPause)
    }
  }
}
