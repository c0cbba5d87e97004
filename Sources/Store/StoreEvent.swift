// StoreEvent.swift -- log lines about a store, and its state for commands.

import EventLoop
import Logging

/// A line for the log.
public struct StoreEvent: Hashable, Sendable {
  /// `info` if the store is used again, `warning` if it is temporarily not used or refuses writes, `error` if that needs
  /// the operator.
  public let level: Logger.Level
  /// The line; it contains the store's address and no secrets.
  public let text: String
}

/// The state of a connection to the store.
public struct StoreReport: Hashable, Sendable {
  /// The state in a few words.
  public var state: String
  /// Whether commands are sent.
  public var isUp: Bool
  /// When `isUp` last changed.
  public var since: BootInstant
  /// Why the store was last taken out of use; nil if it never was.
  public var lastFailure: String?
  /// The store's error if it refuses writes or a command although it is up; nil otherwise.
  public var complaint: String?
  /// The median latency of the last 31 replies; nil before the first one.
  public var latency: Duration?
  /// Commands that were sent.
  public var calls: UInt64 = 0
  /// Commands that timed out, or were not sent because too many were waiting.
  public var timeouts: UInt64 = 0
  /// Error replies.
  public var errors: UInt64 = 0

  public init(state: String, isUp: Bool, since: BootInstant, latency: Duration? = nil) {
    (self.state, self.isUp, self.since, self.latency) = (state, isUp, since, latency)
  }
}

/// Formats a duration for log lines.
func brief(_ duration: Duration) -> String {
  let milliseconds = duration.nanoseconds / 1_000_000
  if milliseconds >= 10_000 { return "\((milliseconds + 500) / 1000) s" }
  return milliseconds >= 1000 ? "\(milliseconds / 1000).\(milliseconds % 1000 / 100) s" : "\(milliseconds) ms"
}
