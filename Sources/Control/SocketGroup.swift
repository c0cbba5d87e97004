// SocketGroup.swift -- lets a group of this machine use the control socket.
//
// The group is looked up in /etc/group alone: a directory service could ask us for the name of its server.

import CAccess
import Glibc

/// A group of this machine.
public struct SocketGroup: Equatable, Sendable {
  /// Its number.
  public let number: gid_t

  /// The group of that name, or of that number in decimal digits; nil where there is none.
  ///
  /// - Parameter file: a file in the format of group(5).
  public init?(_ name: String, in file: String = "/etc/group") {
    if let number = gid_t(name) {
      self.number = number
      return
    }
    guard let stream = fopen(file, "re") else { return nil }
    defer { fclose(stream) }
    while let entry = fgetgrent(stream) {
      if String(cString: entry.pointee.gr_name) == name {
        number = entry.pointee.gr_gid
        return
      }
    }
    return nil
  }

  /// Lets the group use a path: it becomes the path's, or else one of its access list.
  ///
  /// - Returns: errno where neither is possible: the file is another user's, or its file system has no access lists.
  public func take(_ path: String) -> Int32? {
    if lchown(path, uid_t.max, number) == 0 { return nil }
    let code = errno
    // Only root and members of the group may give a file to it, and the unit's filter of system calls forbids it to all.
    guard code == EPERM else { return code }
    return access_add_group(path, number) == 0 ? nil : errno
  }
}
