// CalmPause.swift -- how long a server that has asked for fewer transfers gets none.

import EventLoop

/// Pauses that double for as long as the server keeps asking. Pure: the caller has the clock.
struct CalmPause {
  /// The first pause.
  let shortest: Duration
  /// Nothing is sent until then.
  private var end: BootInstant?
  /// What the next pause is a multiple of the shortest one by.
  private var factor = 1

  /// How many times the shortest pause the longest one is.
  private static let limit = 64

  init(shortest: Duration) { self.shortest = shortest }

  /// Whether nothing may be sent now.
  func isOn(at now: BootInstant) -> Bool { end.map { now < $0 } ?? false }

  /// The server has asked for fewer transfers; what was on its way then says it again, which counts once.
  mutating func begin(at now: BootInstant) {
    guard !isOn(at: now) else { return }
    end = now + shortest * factor
    factor = min(factor * 2, CalmPause.limit)
  }

  /// The server has answered; an answer to what was on its way when the pause began does not end it.
  mutating func answered(at now: BootInstant) {
    guard !isOn(at: now) else { return }
    end = nil
    factor = 1
  }
}
