// SocketGroup.swift -- gives the control socket to a group of this machine.
//
// The group is looked up in /etc/group alone: a directory service could ask us for the name of its server.

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

  /// Gives a path to the group.
  ///
  /// - Returns: errno where the kernel refuses it: only root may, and members of the group with files of their own.
  public func take(_ path: String) -> Int32? {
    lchown(path, uid_t.max, number) == 0 ? nil : errno
  }
}
