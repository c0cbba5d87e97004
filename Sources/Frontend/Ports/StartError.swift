// StartError.swift -- why clients cannot be served, before the first one is.

import Listener

/// Why the program could not start.
package enum StartError: Error, CustomStringConvertible {
  /// An address could not be listened on.
  case listen(ListenError)
  /// Anything else, in one line for a person.
  case other(String)

  /// One line.
  package var description: String {
    switch self {
    case .listen(let error): error.reason
    case .other(let text): text
    }
  }
}
