// FileState.swift -- what is at a path: nothing, a file with its octets and attributes, a link, a folder.

import Glibc

/// What is, was or shall be at a path.
public enum FileState: Hashable, Sendable {
  /// Nothing.
  case absent
  /// A regular file.
  case file([UInt8], FileAttributes)
  /// A symbolic link with its text.
  case link(to: String)
  /// A folder with its permissions.
  case folder(mode: UInt32)
  /// A device, a socket or a FIFO, which is never touched.
  case other

  /// A file of root's that everybody may read.
  static func text(_ text: String, mode: UInt32 = 0o644) -> FileState {
    .file(Array(text.utf8), FileAttributes(mode: mode))
  }

  /// Whether nobody has changed anything from one to the other: everything but the time counts, and for a folder, whose
  /// permissions are nobody's content, that it is one.
  func isSame(as other: FileState) -> Bool {
    switch (self, other) {
    case (.file(let octets, let attributes), .file(let others, let otherAttributes)):
      return octets == others && attributes.mode == otherAttributes.mode && attributes.user == otherAttributes.user
        && attributes.group == otherAttributes.group
    case (.folder, .folder): return true
    default: return self == other
    }
  }

  /// The text of a file; nil for everything else.
  var text: String? {
    guard case .file(let octets, _) = self else { return nil }
    return String(decoding: octets, as: UTF8.self)
  }
}

/// A file's attributes, as far as they are put back.
public struct FileAttributes: Hashable, Sendable {
  /// The twelve permission bits.
  public var mode: UInt32
  /// The owner.
  public var user: UInt32
  /// The group.
  public var group: UInt32
  /// The time of the last change of its content, in seconds and nanoseconds; nil means now.
  public var modified: FileTime?

  init(mode: UInt32, user: UInt32 = geteuid(), group: UInt32 = getegid(), modified: FileTime? = nil) {
    (self.mode, self.user, self.group, self.modified) = (mode, user, group, modified)
  }
}

/// A moment of wall time.
public struct FileTime: Hashable, Sendable {
  /// Seconds since 1970.
  public let seconds: Int
  /// Nanoseconds of that second.
  public let nanoseconds: Int
}
