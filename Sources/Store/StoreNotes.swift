// StoreNotes.swift -- limits the rate of log lines about a store.
//
// The last line about whether the store is used always matches its state: if the state changes faster than the limit,
// the state at the end of the minute is logged.

import Configuration
import EventLoop
import Logging

/// Logs up to eight changes of state and one line of each kind a minute. Loop thread only.
final class StoreNotes {
  enum Kind: Hashable {
    case down
    case nonsense
    case cluster
    case identity
    case refused(String)
    case writes(String)
    case accepted(String)
  }

  private static let interval = Duration.seconds(60)
  private static let changeLimit = 8

  private let address: Configuration.StoreEndpoint
  private let loop: any Loop
  private let pass: (StoreEvent) -> Void
  private var last: [Kind: BootInstant] = [:]
  /// The last logged state; nil if none was logged.
  private var isUp: Bool?
  /// When changes of state were logged within the last minute.
  private var changes: [BootInstant] = []
  /// The latest change if it is not logged yet.
  private var pending: StoreEvent?
  private let timer = OwnedTimer()

  /// - Parameters:
  ///   - isUp: the initial state, which is not logged; nil to log the first state.
  ///   - pass: called with each line.
  init(
    _ address: Configuration.StoreEndpoint, isUp: Bool? = nil, on loop: any Loop, _ pass: @escaping (StoreEvent) -> Void
  ) {
    (self.address, self.isUp, self.loop, self.pass) = (address, isUp, loop, pass)
  }

  /// Stops the timer, and drops a pending change.
  func end() {
    timer.cancel()
    pending = nil
  }

  /// The store is usable. Logs the change, if it is one.
  func up(_ text: String) {
    guard isUp != true else {
      pending = nil
      return
    }
    change(to: true, event(.info, text))
  }

  /// The store is not usable. Logs the change or, if there is none, the reason like `line`.
  func down(_ kind: Kind, _ level: Logger.Level, _ text: String) {
    guard isUp != false else {
      pending = nil
      return line(kind, level, text)
    }
    last[kind] = loop.now
    change(to: false, event(level, text))
  }

  /// Logs a line that is no change of state, at most one of each kind a minute.
  func line(_ kind: Kind, _ level: Logger.Level, _ text: String) {
    if let time = last[kind], loop.now - time < StoreNotes.interval { return }
    last[kind] = loop.now
    pass(event(level, text))
  }

  private func change(to isUp: Bool, _ event: StoreEvent) {
    changes.removeAll { loop.now - $0 >= StoreNotes.interval }
    guard changes.count < StoreNotes.changeLimit else {
      if pending == nil { arm(for: changes[0] + StoreNotes.interval) }
      pending = event
      return
    }
    changes.append(loop.now)
    self.isUp = isUp
    pass(event)
  }

  private func arm(for time: BootInstant) { timer.set(at: time, on: loop, for: self) { $0.passPending() } }

  private func passPending() {
    guard let event = pending, let isUp else { return }
    pending = nil
    change(to: !isUp, event)
  }

  private func event(_ level: Logger.Level, _ text: String) -> StoreEvent {
    StoreEvent(level: level, text: "store \(address): \(text)")
  }
}
