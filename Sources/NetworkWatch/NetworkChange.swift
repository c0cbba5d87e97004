// NetworkChange.swift -- why somebody is told that the network may be another one.

import Glibc

/// What has happened since the last report. `NetworkWatch` reports the first five, `ClockWatch` the last two.
public struct NetworkChange: OptionSet, Hashable, Sendable {
  /// One bit a reason.
  public let rawValue: UInt8
  /// Reasons from their bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// An interface that has an address began or ceased to work.
  public static let links = NetworkChange(rawValue: 1)
  /// An address came or went.
  public static let addresses = NetworkChange(rawValue: 2)
  /// A route came, went or leads elsewhere.
  public static let routes = NetworkChange(rawValue: 4)
  /// There was more news than the kernel could keep: anything may have changed.
  public static let lostEvents = NetworkChange(rawValue: 8)
  /// The link-layer address of the default gateway has become known: `NetworkWatch.identity` is complete now. Nothing else
  /// has changed.
  public static let gateway = NetworkChange(rawValue: 16)
  /// The machine has slept.
  public static let resume = NetworkChange(rawValue: 32)
  /// The wall clock was set; the network has not changed.
  public static let clockSet = NetworkChange(rawValue: 64)
}

extension NetworkChange: CustomStringConvertible {
  /// The reasons in words, for a log line.
  public var description: String {
    let words: [(NetworkChange, String)] = [
      (.links, "links"), (.addresses, "addresses"), (.routes, "routes"), (.lostEvents, "lost events"),
      (.gateway, "gateway"), (.resume, "resume"), (.clockSet, "clock set"),
    ]
    return words.filter { contains($0.0) }.map(\.1).joined(separator: ", ")
  }
}

/// The system did not let us look.
public struct NetworkWatchError: Error, Hashable, CustomStringConvertible {
  /// What was tried, for a person.
  public let action: String
  /// The system's error number.
  public let code: Int32

  /// What was tried, and the system's words for why it failed.
  public var description: String { "\(action): \(String(cString: strerror(code)))" }
}
