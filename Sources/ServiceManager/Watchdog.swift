// Watchdog.swift -- a sign of life for the service manager, given only when every thread has gone round since the last.
//
// On one loop, whose own turns need no asking: a loop that stands gives no sign.

import EventLoop

/// A thread that goes round and round.
public protocol WatchedThread: AnyObject {
  /// What a person calls it.
  var name: String { get }
  /// How often it has gone round.
  var turns: UInt64 { get }
  /// Makes it go round soon where it waits for something to do. May get lost.
  func nudge()
}

/// Gives signs of life. Its loop only.
public final class Watchdog {
  private let threads: [any WatchedThread]
  private let loop: any Loop
  private let interval: Duration
  private let ping: () -> Void
  private let onSilence: ([String]) -> Void
  private var seen: [UInt64]
  private var timer: LoopTimer?
  /// When the present round of asking began; nil while nobody is asked.
  private var askingSince: BootInstant?
  private var hasTold = false

  /// How soon a thread that was asked is looked at again: going round takes microseconds. Later looks come less often.
  private static let firstLook = Duration.milliseconds(20)
  private static let mostLooks = 25

  /// A watchdog that does nothing before `start`.
  ///
  /// - Parameters:
  ///   - timeout: how long the service manager waits for a sign; one is given in half of that.
  ///   - ping: gives the sign.
  ///   - onSilence: told once which threads stand, when they have stood for as long as two signs are apart.
  public init(
    _ threads: [any WatchedThread], on loop: any Loop, timeout: Duration, ping: @escaping () -> Void,
    onSilence: @escaping ([String]) -> Void
  ) {
    self.threads = threads
    self.loop = loop
    interval = timeout / 2
    self.ping = ping
    self.onSilence = onSilence
    seen = threads.map(\.turns)
  }

  /// Begins, with a sign after half of the timeout.
  public func start() { wait(interval) }

  /// Gives no more signs.
  public func stop() { timer?.cancel() }

  private func wait(_ duration: Duration) {
    timer = loop.schedule(after: duration) { [unowned self] in look() }
  }

  private func look() {
    let standing = threads.indices.filter { threads[$0].turns == seen[$0] }
    guard !standing.isEmpty else {
      ping()
      seen = threads.map(\.turns)
      askingSince = nil
      hasTold = false
      return wait(interval)
    }
    let since = askingSince ?? loop.now
    askingSince = since
    let time = loop.now - since
    if time >= interval, !hasTold {
      hasTold = true
      onSilence(standing.map { threads[$0].name })
    }
    // A nudge just before a thread begins to wait is lost, so there is always another one.
    for index in standing { threads[index].nudge() }
    wait(max(Watchdog.firstLook, min(time, interval / Watchdog.mostLooks)))
  }
}
