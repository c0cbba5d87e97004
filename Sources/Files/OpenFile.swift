// OpenFile.swift -- checks whether a name still refers to an open file, which may have been removed or replaced.

import Glibc

/// Checks of open files.
public enum OpenFile {
  /// Whether `name` refers to the open file. Does not follow a symbolic link.
  public static func isNamed(_ name: String, _ descriptor: Int32) -> Bool {
    var (opened, named) = (stat(), stat())
    return fstat(descriptor, &opened) == 0 && lstat(name, &named) == 0 && opened.st_ino == named.st_ino
      && opened.st_dev == named.st_dev
  }
}
