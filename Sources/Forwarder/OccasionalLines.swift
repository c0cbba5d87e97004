// OccasionalLines.swift -- times `OccasionalLog` by an event loop, and flushes its pending counts before a dump.

import EventLoop
import Frontend
import Logging
import Resolver
import Telemetry
import Upstreams

extension OccasionalLog {
  /// A log of events that are timed by `BootInstant`.
  ///
  /// - Parameters:
  ///   - recorder: receives what is not in the log yet when `recordCounts` is called.
  ///   - loop: the loop on which the log reports how often an event has happened.
  package convenience init(_ logger: Logger, recorder: FlightRecorder? = nil, on loop: EventLoop) {
    self.init(logger, recorder: recorder) { [weak loop] deadline, action in
      loop?.execute { [weak loop] in
        loop?.schedule(at: BootInstant(nanoseconds: deadline)) {
          action(BootInstant.now.nanoseconds)
        }
      }
    }
  }
}

extension OccasionalLog {
  /// Logs why a provider or LocalDNS gave no answer: once a minute for each kind of failure.
  func log(_ failure: UpstreamFailure, of name: String, now: BootInstant) {
    log(
      .warning, reason: "\(name): \(failure.kind)", now: now.nanoseconds,
      "\(name == "localdns" ? "" : "provider ")\(name): \(failure.reason)")
  }
}

extension OccasionalLog {
  /// Logs that the daemon reached one of its limits: once a minute for each.
  func log(_ bound: ReachedBound, now: BootInstant) {
    log(.warning, reason: bound.word, now: now.nanoseconds, bound.warning)
  }
}

/// Logs what the network provides: four lines a minute of each kind, however often it changes. Resolver's loop only.
final class NetworkLog: @unchecked Sendable {
  private let log: OccasionalLog
  private var counts: [String: Int] = [:]

  private static let linesPerMinute = 4

  init(_ log: OccasionalLog) { self.log = log }

  /// Logs a line, or counts it if there are too many.
  ///
  /// - Parameter kind: one of a few fixed words.
  func tell(_ kind: String, _ line: String, at now: BootInstant = .now) {
    let count = counts[kind, default: 0]
    counts[kind] = count + 1
    log.log(
      .info, reason: "network: \(kind) \(count % NetworkLog.linesPerMinute)", now: now.nanoseconds, line)
  }
}

extension Forwarder {
  /// Writes pending counts to the log and to the recorder. Resolver's loop only.
  package func tellCounts() {
    watch.flush(at: loop.now)
    occasional.recordCounts()
  }
}
