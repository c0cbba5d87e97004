// PingPermission.swift -- explains how to let this process open ping sockets.

import Files
import Glibc

/// The range of groups that may open ping sockets (icmp(7)).
package enum PingPermission {
  private static let path = "/proc/sys/net/ipv4/ping_group_range"

  /// Why addresses are not measured by ICMP, and what to do, human-readable.
  package static var problem: String {
    "addresses are not measured by icmp: the kernel refuses ping sockets; \(advice())"
  }

  /// What to do so that the kernel allows ping sockets, with the current range if it can be read.
  package static func advice() -> String { advice(present: present(), group: getegid()) }

  /// - Parameters:
  ///   - present: the two numbers of the current range, which is empty if the first one is higher; nil if it cannot be
  ///     read.
  ///   - group: the effective group ID of this process.
  static func advice(present: (UInt32, UInt32)?, group: UInt32) -> String {
    var (lowest, highest) = (group, group)
    if let present, present.0 <= present.1 {
      guard !(present.0...present.1).contains(group) else {
        return "sysctl net.ipv4.ping_group_range=\"\(present.0) \(present.1)\" includes group \(group); "
          + "something else, such as a seccomp filter, refuses them"
      }
      (lowest, highest) = (min(present.0, group), max(present.1, group))
    }
    return "set sysctl net.ipv4.ping_group_range=\"\(lowest) \(highest)\""
      + (present.map { " (it is now \"\($0.0) \($0.1)\")" } ?? "")
  }

  /// The two numbers of the range; nil if they cannot be read.
  private static func present() -> (UInt32, UInt32)? {
    guard let octets = try? WholeFile.read(path, limit: 64) else { return nil }
    let numbers = String(decoding: octets, as: UTF8.self).split(whereSeparator: \.isWhitespace).compactMap {
      UInt32($0)
    }
    return numbers.count == 2 ? (numbers[0], numbers[1]) : nil
  }
}
