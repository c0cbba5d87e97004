// SocketGroup.swift -- lets a group of this machine use the control socket.
//
// The group is looked up only in /etc/group: a directory service could send us a query for the name of its server.

import CAccess
import Glibc

/// A group of this machine.
public struct SocketGroup: Equatable, Sendable {
  /// The group ID.
  public let number: gid_t

  /// Finds a group by its name, or by its ID in decimal digits; nil if no group has that name.
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

  /// Lets the group use a path, by changing the path's group or else by an entry in its access list.
  ///
  /// - Returns: nil on success; errno if neither is possible, because another user owns the file or its file system has
  ///   no access lists.
  public func take(_ path: String) -> Int32? {
    if lchown(path, uid_t.max, number) == 0 { return nil }
    let code = errno
    // Only root and members of the group may give the file to it, and the unit's system call filter forbids even that.
    guard code == EPERM else { return code }
    return access_add_group(path, number) == 0 ? nil : errno
  }
}
