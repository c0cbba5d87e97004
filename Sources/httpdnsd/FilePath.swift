// FilePath.swift -- paths of files: from the root on, and whether two of them are one file.

import Glibc

/// Paths of files.
enum FilePath {
  /// The path from the root on, with its links as they are; as it stands where the working folder is not known.
  static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return "\(String(cString: folder))/\(path)"
  }

  /// Whether both lead to one place: a file that is not there, or that this user cannot reach, has its path alone.
  static func isSame(_ left: String, _ right: String) -> Bool {
    let (left, right) = (absolute(left), absolute(right))
    return left == right || resolved(left).map { $0 == resolved(right) } ?? false
  }

  private static func resolved(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
  }
}
