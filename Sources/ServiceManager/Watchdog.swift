// Watchdog.swift -- pings the service manager's watchdog only if every thread has made progress since the last ping.
//
// It runs on a loop and needs no check for that: a stuck loop does not ping.

import EventLoop

/// A thread that runs in turns. Its members may be used from any thread.
public protocol WatchedThread: AnyObject {
  /// The name in log messages.
  var name: String { get }
  /// The number of completed turns.
  var turns: UInt64 { get }
  /// Wakes the thread if it is waiting, so that it completes a turn. May have no effect.
  func nudge()
}

/// Sends watchdog pings. Only on its loop.
public final class Watchdog {
  private let threads: [any WatchedThread]
  private let loop: any Loop
  private let interval: Duration
  private let ping: () -> Void
  private let onSilence: ([String]) -> Void
  private var seen: [UInt64]
  private let timer = OwnedTimer()
  /// The start of the current series of nudges; nil if no thread is being nudged.
  private var askingSince: BootInstant?
  private var hasReported = false

  /// The pause before the first look after a nudge: a turn takes microseconds. Later pauses grow.
  private static let firstLook = Duration.milliseconds(20)
  private static let mostLooks = 25

  /// Creates a watchdog that does nothing before `start`.
  ///
  /// - Parameters:
  ///   - timeout: the service manager's timeout; pings come at half of it.
  ///   - ping: sends a ping.
  ///   - onSilence: called once with the names of the stuck threads, when a ping is overdue by half of the timeout.
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

  /// Starts; the first ping comes after half of the timeout.
  public func start() { wait(interval) }

  /// Stops pinging.
  public func stop() { timer.cancel() }

  private func wait(_ duration: Duration) { timer.set(after: duration, on: loop, for: self) { $0.look() } }

  private func look() {
    let standing = threads.indices.filter { threads[$0].turns == seen[$0] }
    guard !standing.isEmpty else {
      ping()
      seen = threads.map(\.turns)
      askingSince = nil
      hasReported = false
      return wait(interval)
    }
    let since = askingSince ?? loop.now
    askingSince = since
    let time = loop.now - since
    if time >= interval, !hasReported {
      hasReported = true
      onSilence(standing.map { threads[$0].name })
    }
    // A nudge just before a thread begins to wait is lost, so nudges are repeated.
    for index in standing { threads[index].nudge() }
    wait(max(Watchdog.firstLook, min(time, interval / Watchdog.mostLooks)))
  }
}
