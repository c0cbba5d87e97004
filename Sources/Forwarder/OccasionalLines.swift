// OccasionalLines.swift -- what is counted before it is told: alarms from a loop, and all of it before a dump.

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
  ///   - recorder: gets what is not in the log yet, when `recordCounts` is called.
  ///   - loop: the loop that tells how often something has happened.
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
  /// Logs that a bound of ours was reached: once a minute for each.
  func log(_ bound: ReachedBound, now: BootInstant) {
    log(.warning, reason: bound.word, now: now.nanoseconds, bound.warning)
  }
}

/// What the network hands out, for the log: four lines a minute of each kind, however often it changes its mind. Resolver's
/// loop only.
final class NetworkLog: @unchecked Sendable {
  private let log: OccasionalLog
  private var counts: [String: Int] = [:]

  private static let linesPerMinute = 4

  init(_ log: OccasionalLog) { self.log = log }

  /// Logs a line, or counts it.
  ///
  /// - Parameter kind: one of a few words.
  func tell(_ kind: String, _ line: String, at now: BootInstant = .now) {
    let count = counts[kind, default: 0]
    counts[kind] = count + 1
    log.log(
      .info, reason: "network: \(kind) \(count % NetworkLog.linesPerMinute)", now: now.nanoseconds, line)
  }
}

extension Forwarder {
  /// Tells the log and the recorder what has been counted and not told yet. Resolver's loop only.
  package func tellCounts() {
    watch.flush(at: loop.now)
    occasional.recordCounts()
  }
}
