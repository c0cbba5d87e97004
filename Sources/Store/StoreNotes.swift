// StoreNotes.swift -- which lines about a store are logged.
//
// The last line about whether the store is used is always true: where changes come too fast to be logged one by one, the
// state of the end of the minute is.

import EventLoop

/// Passes a change of state at once, up to eight a minute, and one line of each kind a minute. Loop thread only.
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

  private let address: StoreAddress
  private let loop: any Loop
  private let pass: (StoreEvent) -> Void
  private var last: [Kind: BootInstant] = [:]
  /// What the log says of the store; nil if it says nothing yet.
  private var isUp: Bool?
  /// When the last changes were logged.
  private var changes: [BootInstant] = []
  /// The change that the log does not have yet.
  private var pending: StoreEvent?
  private let timer = OwnedTimer()

  /// Creates notes.
  ///
  /// - Parameters:
  ///   - isUp: what needs no line to begin with; nil if the first state is a change.
  ///   - pass: takes the lines.
  init(_ address: StoreAddress, isUp: Bool? = nil, on loop: any Loop, _ pass: @escaping (StoreEvent) -> Void) {
    (self.address, self.isUp, self.loop, self.pass) = (address, isUp, loop, pass)
  }

  /// Passes nothing from now on.
  func end() {
    timer.cancel()
    pending = nil
  }

  /// Notes that the store can be used.
  func up(_ text: String) {
    guard isUp != true else {
      pending = nil
      return
    }
    change(to: true, event(.info, text))
  }

  /// Notes that the store cannot be used, and why; also if it could not before.
  func down(_ kind: Kind, _ level: StoreEvent.Level, _ text: String) {
    guard isUp != false else {
      pending = nil
      return line(kind, level, text)
    }
    last[kind] = loop.now
    change(to: false, event(level, text))
  }

  /// Notes what changes nothing about whether the store is used.
  func line(_ kind: Kind, _ level: StoreEvent.Level, _ text: String) {
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

  private func arm(for time: BootInstant) {
    timer.set(at: time, on: loop, for: self) { $0.passPending() }
  }

  private func passPending() {
    guard let event = pending, let isUp else { return }
    pending = nil
    change(to: !isUp, event)
  }

  private func event(_ level: StoreEvent.Level, _ text: String) -> StoreEvent {
    StoreEvent(level: level, text: "store \(address): \(text)")
  }
}
