// FileState.swift -- the state of a path: nothing, a file with content and attributes, a link or a folder.

import Glibc

/// The past, current or planned state of a path.
public enum FileState: Hashable, Sendable {
  /// Nothing.
  case absent
  /// A regular file.
  case file([UInt8], FileAttributes)
  /// A symbolic link with its target, which need not exist.
  case link(to: String)
  /// A folder with its permission bits.
  case folder(mode: UInt32)
  /// A device, a socket or a FIFO, which setup never changes.
  case other

  /// A file that belongs to the caller, usually root; all users may read it.
  static func text(_ text: String, mode: UInt32 = 0o644) -> FileState {
    .file(Array(text.utf8), FileAttributes(mode: mode))
  }

  /// Whether the two states are equal apart from the modification time. Two folders are always equal: their permissions
  /// do not matter.
  func isSame(as other: FileState) -> Bool {
    switch (self, other) {
    case (.file(let octets, let attributes), .file(let others, let otherAttributes)):
      return octets == others && attributes.mode == otherAttributes.mode && attributes.user == otherAttributes.user
        && attributes.group == otherAttributes.group
    case (.folder, .folder): return true
    default: return self == other
    }
  }

  /// The text of a regular file; nil for other states.
  var text: String? {
    guard case .file(let octets, _) = self else { return nil }
    return String(decoding: octets, as: UTF8.self)
  }
}

/// The attributes of a file that undo restores.
public struct FileAttributes: Hashable, Sendable {
  /// The twelve permission bits.
  public var mode: UInt32
  /// The user ID of the owner.
  public var user: UInt32
  /// The group ID.
  public var group: UInt32
  /// When the content was last modified; nil means the time of writing.
  public var modified: FileTime?

  init(mode: UInt32, user: UInt32 = geteuid(), group: UInt32 = getegid(), modified: FileTime? = nil) {
    (self.mode, self.user, self.group, self.modified) = (mode, user, group, modified)
  }
}

/// A wall time, as stat(2) returns it.
public struct FileTime: Hashable, Sendable {
  /// Seconds since 1970.
  public let seconds: Int
  /// Nanoseconds within that second.
  public let nanoseconds: Int
}
