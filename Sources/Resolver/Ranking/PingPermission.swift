// PingPermission.swift -- what lets this process open ping sockets.

import Files
import Glibc

/// The range of groups that may open ping sockets (icmp(7)).
package enum PingPermission {
  /// The sysctl's file.
  private static let path = "/proc/sys/net/ipv4/ping_group_range"

  /// That the kernel gives this process none, and what to do, human-readable.
  package static var problem: String {
    "addresses are not measured by icmp: the kernel refuses ping sockets; \(advice())"
  }

  /// What to do so that the kernel gives this process ping sockets, with the present range if it can be read.
  package static func advice() -> String { advice(present: present(), group: getegid()) }

  /// - Parameters:
  ///   - present: the range as it is; nil if it cannot be read.
  ///   - group: the number of this process's group.
  static func advice(present: ClosedRange<UInt32>?, group: UInt32) -> String {
    var range = group...group
    if let present { range = min(present.lowerBound, group)...max(present.upperBound, group) }
    let now = present.map { "it is now \"\($0.lowerBound) \($0.upperBound)\"" }
    return "sysctl net.ipv4.ping_group_range=\"\(range.lowerBound) \(range.upperBound)\" allows them"
      + (now.map { " (\($0))" } ?? "")
  }

  /// The range; nil if it is empty, as by default in Debian 12, or cannot be read.
  private static func present() -> ClosedRange<UInt32>? {
    guard let octets = try? WholeFile.read(path, limit: 64) else { return nil }
    let numbers = String(decoding: octets, as: UTF8.self).split(whereSeparator: \.isWhitespace).compactMap {
      UInt32($0)
    }
    guard numbers.count == 2, numbers[0] <= numbers[1] else { return nil }
    return numbers[0]...numbers[1]
  }
}
