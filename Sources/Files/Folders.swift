// Folders.swift -- lists the names in a folder, and reads symbolic links.

import Glibc

/// What is in a folder and where a link leads.
public enum Folder {
  /// The names in a folder, in no order; nil if it cannot be read.
  public static func names(in path: String) -> [String]? {
    guard let stream = opendir(path) else { return nil }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      // Read in place: a copy of `d_name` has 256 octets, and the entry may end before.
      let octets = UnsafeRawPointer(entry) + MemoryLayout<dirent>.offset(of: \.d_name)!
      let name = String(cString: octets.assumingMemoryBound(to: CChar.self))
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// Where a symbolic link leads, as it says; nil if the path is no link.
  public static func target(ofLink path: String) -> String? {
    var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = target.withUnsafeMutableBytes { readlink(path, $0.baseAddress!, $0.count) }
    return count > 0 ? String(decoding: target[..<count], as: UTF8.self) : nil
  }
}
