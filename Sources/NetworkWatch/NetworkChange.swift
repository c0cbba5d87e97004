// NetworkChange.swift -- the reasons for a report that the network may have changed.

import Glibc

/// The changes since the last report. `NetworkWatch` reports the first five, `ClockWatch` the last two.
public struct NetworkChange: OptionSet, Hashable, Sendable {
  /// One bit per reason.
  public let rawValue: UInt8
  /// Unknown bits are not removed.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// An interface with an address started or stopped running.
  public static let links = NetworkChange(rawValue: 1)
  /// An address was added, removed or changed.
  public static let addresses = NetworkChange(rawValue: 2)
  /// A route was added, removed or changed.
  public static let routes = NetworkChange(rawValue: 4)
  /// The kernel's queue overflowed: anything may have changed.
  public static let lostEvents = NetworkChange(rawValue: 8)
  /// The kernel learned the link-layer address of the default gateway: `NetworkWatch.identity` is now complete. Nothing
  /// else changed.
  public static let gateway = NetworkChange(rawValue: 16)
  /// The machine has slept.
  public static let resume = NetworkChange(rawValue: 32)
  /// The wall clock was set; the network has not changed.
  public static let clockSet = NetworkChange(rawValue: 64)
}

extension NetworkChange: CustomStringConvertible {
  /// The reasons, separated by commas, for a log line.
  public var description: String {
    let words: [(NetworkChange, String)] = [
      (.links, "links"), (.addresses, "addresses"), (.routes, "routes"), (.lostEvents, "lost events"),
      (.gateway, "gateway"), (.resume, "resume"), (.clockSet, "clock set"),
    ]
    return words.filter { contains($0.0) }.map(\.1).joined(separator: ", ")
  }
}

/// A system call of a watch failed.
public struct NetworkWatchError: Error, Hashable, CustomStringConvertible {
  /// The failed operation, human-readable.
  public let action: String
  /// The system's error number.
  public let code: Int32

  /// The failed operation and the system's error message.
  public var description: String { "\(action): \(String(cString: strerror(code)))" }
}
