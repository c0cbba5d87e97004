// CalmPause.swift -- pauses sending to a server that asked for fewer transfers.

import EventLoop

/// A pause that doubles each time until the server answers again. Has no clock of its own: the caller passes the time.
struct CalmPause {
  /// The length of the first pause.
  let shortest: Duration
  /// The end of the current pause; nil after an answer.
  private var end: BootInstant?
  /// The next pause as a multiple of the shortest one.
  private var factor = 1

  /// The longest pause as a multiple of the shortest one.
  private static let limit = 64

  init(shortest: Duration) { self.shortest = shortest }

  /// Whether a pause is in effect.
  func isOn(at now: BootInstant) -> Bool { end.map { now < $0 } ?? false }

  /// Begins a pause after the server asked for fewer transfers. Ignored during a pause: transfers that were in flight
  /// report the same request.
  mutating func begin(at now: BootInstant) {
    guard !isOn(at: now) else { return }
    end = now + shortest * factor
    factor = min(factor * 2, CalmPause.limit)
  }

  /// Resets the pause after an answer. Ignored during a pause: the answer belongs to a transfer that was in flight.
  mutating func answered(at now: BootInstant) {
    guard !isOn(at: now) else { return }
    end = nil
    factor = 1
  }
}
