// PathDependencies.swift -- the folder entries that determine which file a path leads to.
//
// A path may lead through folders that do not exist yet and through symbolic links that are replaced. It depends on every
// entry on the way, and on the file itself, which may be a mount point.

import Glibc

/// The folder entries that determine which files some paths lead to.
struct PathDependencies: Equatable {
  /// The relevant names by their folder, which is not a symbolic link.
  private(set) var names: [String: Set<String>] = [:]
  /// The files that the paths currently lead to.
  private(set) var files: Set<String> = []

  /// The kernel's limit of symbolic links in a path.
  private static let maximumLinks = 40

  /// Follows absolute paths as far as they exist.
  init(of paths: [String]) {
    for path in paths { follow(path) }
  }

  private mutating func follow(_ path: String) {
    var folder = "/"
    var rest = path.split(separator: "/").map(String.init)[...]
    var links = 0
    while let name = rest.popFirst() {
      if name == "." { continue }
      if name == ".." {
        folder = PathDependencies.parent(of: folder)
        continue
      }
      let entry = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
      var status = stat()
      let exists = lstat(entry, &status) == 0
      if exists, status.st_mode & S_IFMT == S_IFDIR, !rest.isEmpty {
        folder = entry
        continue
      }
      names[folder, default: []].insert(name)
      guard exists else { return }
      guard status.st_mode & S_IFMT == S_IFLNK else {
        if rest.isEmpty { files.insert(entry) }
        return
      }
      links += 1
      guard links <= PathDependencies.maximumLinks, let target = PathDependencies.target(of: entry) else { return }
      if target.hasPrefix("/") { folder = "/" }
      rest = target.split(separator: "/").map(String.init) + rest
    }
  }

  private static func parent(of folder: String) -> String {
    let end = folder.lastIndex(of: "/")!
    return end == folder.startIndex ? "/" : String(folder[..<end])
  }

  private static func target(of link: String) -> String? {
    var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = target.withUnsafeMutableBytes { readlink(link, $0.baseAddress!, $0.count) }
    return count > 0 ? String(decoding: target[..<count], as: UTF8.self) : nil
  }
}
