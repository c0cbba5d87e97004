// SetupError.swift -- why something was not changed, in words for a person.

import Glibc

/// Why setup or undo did nothing, or stopped.
public enum SetupError: Error, Hashable, CustomStringConvertible {
  /// It would do harm, or be no use; the text says what helps.
  case refused(String)
  /// Somebody has changed files since.
  case changed([Conflict])
  /// A system call failed.
  case system(path: String, call: String, number: Int32)

  /// A file that is neither what setup wrote nor what was there before.
  public struct Conflict: Hashable, Sendable {
    /// The file's path inside the root.
    public let path: String
    /// From what setup wrote to what is there now.
    public let difference: String
  }

  /// The lines for a person.
  public var description: String {
    switch self {
    case .refused(let reason): return reason
    case .changed(let conflicts):
      let files = conflicts.map { "\($0.path) was changed since:\n\($0.difference)" }.joined(separator: "\n")
      return files
        + "\nnothing was undone; --force puts back what was there before setup, --keep-changed leaves these as they are"
    case .system(let path, let call, let number):
      let help = number == EACCES || number == EPERM ? "; this needs root" : ""
      return "\(path): \(call): \(String(cString: strerror(number)))\(help)"
    }
  }

  /// The current `errno`.
  static func last(_ call: String, _ path: String) -> SetupError { .system(path: path, call: call, number: errno) }
}
