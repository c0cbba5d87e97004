// FilePath.swift -- makes paths absolute, and compares them.

import Glibc
import SystemSetup

enum FilePath {
  /// The absolute path with links unresolved; the path as given if the working directory is unknown.
  static func absolute(_ path: String) -> String {
    guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return "\(String(cString: folder))/\(path)"
  }

  /// Whether both paths lead to the same file. If a file is missing or not accessible, only its path is compared.
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

extension ServiceUnit {
  /// Whether the service reads this configuration.
  func reads(_ path: String) -> Bool { configuration.map { FilePath.isSame($0, path) } ?? false }
}
