// Foreground.swift -- waits for the foreground of a terminal, which a shell gives to one process group at a time.

import Glibc

enum Foreground {
  /// Whether this process is in the terminal's foreground, or the terminal is not its controlling terminal.
  static func isOurs(_ terminal: Int32) -> Bool {
    let group = tcgetpgrp(terminal)
    return group <= 0 || group == getpgrp()
  }

  /// Stops the process until it is in the foreground, as the kernel stops a background process that uses the terminal.
  ///
  /// - Returns: whether it is in the foreground. If the shell is gone, the kernel does not stop the process (POSIX,
  ///   "orphaned process group"), because nothing could continue it.
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
      // After `bg` the process runs, but still in the background.
      guard continuation.next() != nil else { return isOurs(terminal) }
    }
    return true
  }
}
