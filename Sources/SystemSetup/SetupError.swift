// SetupError.swift -- human-readable reasons why setup or undo changed nothing or stopped.

import Glibc

/// Why setup or undo did nothing, or stopped midway.
public enum SetupError: Error, Hashable, CustomStringConvertible {
  /// The operation would do harm or have no effect; the text gives the reason, and what to do instead.
  case refused(String)
  /// Files were changed after setup.
  case changed([Conflict])
  /// A system call failed.
  case system(path: String, call: String, number: Int32)

  /// A file that is neither what setup wrote nor what was there before.
  public struct Conflict: Hashable, Sendable {
    /// The file's path inside the root.
    public let path: String
    /// The diff from what setup wrote to the current content.
    public let difference: String
  }

  /// One or more human-readable lines.
  public var description: String {
    switch self {
    case .refused(let reason): return reason
    case .changed(let conflicts):
      let files = conflicts.map { "\($0.path) was changed since:\n\($0.difference)" }.joined(separator: "\n")
      return files
        + "\nnothing was undone; --force restores the state before setup, --keep-changed too, and keeps these files "
        + "beside it, as FILE.httpdnsd-changed (a script as .FILE.httpdnsd-changed)"
    case .system(let path, let call, let number):
      let isDenied = number == EACCES || number == EPERM
      let advice = geteuid() != 0 ? "this needs root" : "it may be immutable: `lsattr` shows it, `chattr -i` ends that"
      let help = isDenied ? "; \(advice)" : ""
      return "\(path): \(call): \(String(cString: strerror(number)))\(help)"
    }
  }

  /// Creates an error from the current `errno`.
  static func last(_ call: String, _ path: String) -> SetupError { .system(path: path, call: call, number: errno) }
}
