// StartError.swift -- why the daemon cannot start.

import Listener

/// Why the daemon cannot start, or cannot take a new configuration.
package enum StartError: Error, CustomStringConvertible {
  /// The daemon cannot listen on an address.
  case listen(ListenError)
  /// Any other reason, in one human-readable line.
  case other(String)

  /// One human-readable line.
  package var description: String {
    switch self {
    case .listen(let error): error.reason
    case .other(let text): text
    }
  }
}
