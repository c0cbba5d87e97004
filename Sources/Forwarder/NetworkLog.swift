// NetworkLog.swift -- logs the resolvers, search domains and identity of the network.

import EventLoop
import Logging
import Telemetry

/// Logs what the network provides: four lines a minute of each kind, however often it changes. Resolver's loop only.
final class NetworkLog {
  private let log: OccasionalLog
  private var counts: [String: Int] = [:]

  private static let linesPerMinute = 4

  init(_ log: OccasionalLog) { self.log = log }

  /// Logs a line, or counts it if there are too many.
  ///
  /// - Parameter kind: one of a few fixed words.
  func log(_ kind: String, _ line: String, at now: BootInstant = .now) {
    let count = counts[kind, default: 0]
    counts[kind] = count + 1
    log.log(.info, reason: "network: \(kind) \(count % NetworkLog.linesPerMinute)", now: now.nanoseconds, line)
  }
}
