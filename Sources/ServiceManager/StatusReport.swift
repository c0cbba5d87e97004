// StatusReport.swift -- keeps the service manager's status line up to date, at a limited rate.

import EventLoop

/// Sends a status line when it has changed. It checks after turns of the loop and so causes no wake-ups while the daemon is
/// idle. Only on its loop.
public final class StatusReport {
  private let loop: any Loop
  private let pause: Duration
  private let compose: () -> String
  private let send: (String) -> Void
  private var last: String
  private var lastLook: BootInstant
  private let timer = OwnedTimer()
  private var isStopped = false

  /// The shortest time between two checks.
  public static let usualPause = Duration.seconds(5)

  /// - Parameters:
  ///   - compose: returns the current line.
  ///   - send: sends a line that differs from the previous one. The caller sends the first one, `line`.
  public init(
    on loop: any Loop, pause: Duration = StatusReport.usualPause, compose: @escaping () -> String,
    send: @escaping (String) -> Void
  ) {
    self.loop = loop
    self.pause = pause
    self.compose = compose
    self.send = send
    last = compose()
    lastLook = loop.now
  }

  /// The line that the service manager has.
  public var line: String { last }

  /// The current line, which the caller must send, for example together with another message.
  public func renewed() -> String {
    lastLook = loop.now
    last = compose()
    return last
  }

  /// Checks whether the line has changed; call it after each turn of the loop. If the last check was too recent, sets a
  /// timer for the next one.
  public func loopHasTurned() {
    // Nothing changes within the turn of a check.
    guard !isStopped, !timer.isSet, loop.now > lastLook else { return }
    guard loop.now - lastLook < pause else { return look() }
    timer.set(at: lastLook + pause, on: loop, for: self) { $0.look() }
  }

  /// Ends the checks.
  public func stop() {
    isStopped = true
    timer.cancel()
  }

  private func look() {
    lastLook = loop.now
    let line = compose()
    guard line != last else { return }
    last = line
    send(line)
  }
}
