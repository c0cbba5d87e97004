// RollCall.swift -- asks threads once whether they go round, for who wants to know now; a watchdog asks all the time.

import EventLoop

/// One question to some threads.
public enum RollCall {
  /// How soon a thread that was asked is looked at again: going round takes microseconds. Later looks come less often.
  private static let firstLook = Duration.milliseconds(1)
  private static let longestPause = Duration.milliseconds(50)

  /// The names of the threads that stand: that have not gone round within that time, though they were asked to. None as
  /// soon as each has. To be called from a task that prefers the loop.
  ///
  /// - Parameter patience: a thread that works at something long is not found to stand before.
  public static func standing(
    _ threads: [any WatchedThread], on loop: any Loop, within patience: Duration
  ) async -> [String] {
    let seen = threads.map(\.turns)
    let deadline = loop.now + patience
    var pause = firstLook
    while true {
      let standing = threads.indices.filter { threads[$0].turns == seen[$0] }.map { threads[$0] }
      guard !standing.isEmpty, loop.now < deadline else { return standing.map(\.name) }
      // A nudge just before a thread begins to wait is lost, so there is always another one.
      for thread in standing { thread.nudge() }
      await loop.sleep(for: min(pause, deadline - loop.now))
      pause = min(pause * 2, longestPause)
    }
  }
}
