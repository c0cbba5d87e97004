// LogThreshold.swift -- how important an event has to be to be logged, for all loggers of the program at once.

import Logging
import Synchronization

/// The level below which events are left out. Any thread.
public final class LogThreshold: Sendable {
  /// The level's place among all levels.
  private let place: Atomic<Int>

  /// A threshold at that level.
  public init(_ level: Logger.Level) { place = Atomic(LogThreshold.place(of: level)) }

  /// The level; another one counts from the next event on.
  public var level: Logger.Level {
    get { Logger.Level.allCases[place.load(ordering: .relaxed)] }
    set { place.store(LogThreshold.place(of: newValue), ordering: .relaxed) }
  }

  private static func place(of level: Logger.Level) -> Int { Logger.Level.allCases.firstIndex(of: level) ?? 0 }
}
