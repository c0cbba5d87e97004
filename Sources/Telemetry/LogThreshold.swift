// LogThreshold.swift -- the lowest level that is logged, shared by all loggers of the process.

import Logging
import Synchronization

/// The level below which events are not logged. Any thread.
public final class LogThreshold: Sendable {
  /// The index of the level in `Logger.Level.allCases`.
  private let place: Atomic<Int>

  public init(_ level: Logger.Level) { place = Atomic(LogThreshold.place(of: level)) }

  /// The level; a change takes effect with the next event.
  public var level: Logger.Level {
    get { Logger.Level.allCases[place.load(ordering: .relaxed)] }
    set { place.store(LogThreshold.place(of: newValue), ordering: .relaxed) }
  }

  private static func place(of level: Logger.Level) -> Int { Logger.Level.allCases.firstIndex(of: level) ?? 0 }
}
