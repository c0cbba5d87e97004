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
    var (first, second) = (stat(), stat())
    guard stat(left, &first) == 0, stat(right, &second) == 0 else { return absolute(left) == absolute(right) }
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }
}

extension ServiceUnit {
  /// Whether the service reads this configuration.
  func reads(_ path: String) -> Bool { configuration.map { FilePath.isSame($0, path) } ?? false }
}
