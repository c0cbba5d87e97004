// OpenFile.swift -- whether an open file is still the one of its name, which another program may have removed or replaced.

import Glibc

/// Files that are open.
public enum OpenFile {
  /// Whether that is the file's name now; a symbolic link is not followed.
  public static func isNamed(_ name: String, _ descriptor: Int32) -> Bool {
    var (opened, named) = (stat(), stat())
    return fstat(descriptor, &opened) == 0 && lstat(name, &named) == 0 && opened.st_ino == named.st_ino
      && opened.st_dev == named.st_dev
  }
}
