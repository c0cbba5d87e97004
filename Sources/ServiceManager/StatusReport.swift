// StatusReport.swift -- one line about the program for the service manager: sent when it has changed, not too often.

import EventLoop

/// Keeps a line up to date without waking anybody: it looks when the loop has turned anyway. Its loop only.
public final class StatusReport {
  private let loop: any Loop
  private let pause: Duration
  private let compose: () -> String
  private let send: (String) -> Void
  private var last: String
  private var lastLook: BootInstant
  private var timer: LoopTimer?
  private var isStopped = false

  /// The time between two looks at least.
  public static let usualPause = Duration.seconds(5)

  /// - Parameters:
  ///   - compose: the line as it should be.
  ///   - send: sends a line that differs from the one before; the first one, `line`, is for the caller to send.
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

  /// The line that is known to the service manager.
  public var line: String { last }

  /// The line as it is now, for the caller to send together with something else.
  public func renewed() -> String {
    lastLook = loop.now
    last = compose()
    return last
  }

  /// The loop has turned: something may have changed. What comes too early is looked at later, also where the loop would
  /// not turn by itself then.
  public func loopHasTurned() {
    // In the turn of a look nothing is newer than that.
    guard !isStopped, timer == nil, loop.now > lastLook else { return }
    guard loop.now - lastLook < pause else { return look() }
    timer = loop.schedule(at: lastLook + pause) { [unowned self] in
      timer = nil
      look()
    }
  }

  /// Looks no more.
  public func stop() {
    isStopped = true
    timer?.cancel()
  }

  private func look() {
    lastLook = loop.now
    let line = compose()
    guard line != last else { return }
    last = line
    send(line)
  }
}
