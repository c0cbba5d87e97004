// Foreground.swift -- whose terminal it is: a shell with job control lends it to one process group at a time.

import Glibc

/// The foreground of a terminal.
enum Foreground {
  /// Whether we are in the foreground of it, or it is not the one that controls us, where there is no such thing.
  static func isOurs(_ terminal: Int32) -> Bool {
    let group = tcgetpgrp(terminal)
    return group <= 0 || group == getpgrp()
  }

  /// Stops the process, as whoever touches the terminal from the background is stopped, until it is in the foreground.
  ///
  /// - Returns: whether it is. A process group whose shell is gone is not stopped (POSIX, "orphaned process group"), and
  ///   nobody would make it go on.
  static func wait(on terminal: Int32) -> Bool {
    guard !isOurs(terminal) else { return true }
    guard let continuation = SignalSource([SIGCONT], ignoring: []) else { return false }
    continuation.take()
    let before = signal(SIGTTOU, SIG_DFL)
    defer {
      signal(SIGTTOU, before)
      continuation.restore()
    }
    while !isOurs(terminal) {
      raise(SIGTTOU)
      // What `bg` makes go on is in the background still.
      guard continuation.next() != nil else { return isOurs(terminal) }
    }
    return true
  }
}
