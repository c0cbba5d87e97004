// LibraryMessages.swift -- redirects libevent's own messages, which it would write to stderr.

import CEvent
import Synchronization

/// The destination of libevent's messages, one for the whole process.
public enum LibraryMessages {
  private static let destination = Mutex<(@Sendable (String) -> Void)?>(nil)

  /// Passes every message to `destination` instead of stderr. `destination` may be called on any thread.
  public static func pass(to destination: @escaping @Sendable (String) -> Void) {
    LibraryMessages.destination.withLock { $0 = destination }
    event_set_log_callback { _, text in
      guard let text else { return }
      LibraryMessages.log(String(cString: text))
    }
  }

  private static func log(_ message: String) {
    let destination = destination.withLock { $0 }
    destination?(message)
  }
}
