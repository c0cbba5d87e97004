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
      let help = SetupError.help(path, number, isRoot: geteuid() == 0).map { "; \($0)" } ?? ""
      return "\(path): \(call): \(String(cString: strerror(number)))\(help)"
    }
  }

  /// What helps if a call was not permitted; nil if that is unknown.
  static func help(_ path: String, _ number: Int32, isRoot: Bool) -> String? {
    switch number {
    case EACCES where !isRoot, EPERM where !isRoot: "this needs root"
    // Nothing else keeps root from replacing a file on this machine's disks.
    case EPERM: "it is immutable, or its folder is (`lsattr -d` shows an i): `chattr -i \(path)` ends that"
    default: nil
    }
  }

  /// Creates an error from the current `errno`.
  static func last(_ call: String, _ path: String) -> SetupError { .system(path: path, call: call, number: errno) }
}
