// StoreEvent.swift -- what a store's owner logs and shows.

import EventLoop

/// One line for the log.
public struct StoreEvent: Hashable, Sendable {
  /// How serious it is.
  public enum Level: Hashable, Sendable {
    /// The store is used again.
    case info
    /// The store is not used for a while.
    case warning
    /// Somebody has to change a setting.
    case error
  }

  /// How serious it is.
  public let level: Level
  /// The line, with the store's address and without secrets.
  public let text: String
}

/// The state of a connection to the store.
public struct StoreReport: Hashable, Sendable {
  /// In a few words.
  public var state: String
  /// Whether commands may be sent.
  public var isUp: Bool
  /// Since when the store is, or is not, used.
  public var since: BootInstant
  /// Why it was not used the last time; nil if it always was.
  public var lastFailure: String?
  /// The store's words for why it takes no writes, or not each command, although it is up; nil if it does.
  public var complaint: String?
  /// The median of the last 31 replies; nil before the first one.
  public var latency: Duration?
  /// Commands that were sent.
  public var calls: UInt64
  /// Commands without a reply in time.
  public var timeouts: UInt64
  /// Error replies.
  public var errors: UInt64

  /// Creates a report with counters of 0.
  public init(state: String, isUp: Bool, since: BootInstant, latency: Duration? = nil) {
    self.init(
      state: state, isUp: isUp, since: since, latency: latency, calls: 0, timeouts: 0, errors: 0)
  }

  init(
    state: String, isUp: Bool, since: BootInstant, lastFailure: String? = nil, complaint: String? = nil,
    latency: Duration? = nil, calls: UInt64, timeouts: UInt64, errors: UInt64
  ) {
    (self.state, self.isUp, self.since) = (state, isUp, since)
    (self.lastFailure, self.complaint, self.latency) = (lastFailure, complaint, latency)
    (self.calls, self.timeouts, self.errors) = (calls, timeouts, errors)
  }
}

/// Durations in log lines.
func brief(_ duration: Duration) -> String {
  let milliseconds = duration.nanoseconds / 1_000_000
  if milliseconds >= 10_000 { return "\((milliseconds + 500) / 1000) s" }
  return milliseconds >= 1000 ? "\(milliseconds / 1000).\(milliseconds % 1000 / 100) s" : "\(milliseconds) ms"
}
