// OccasionalLines.swift -- what is counted before it is told: alarms from a loop, and all of it before a dump.

import EventLoop
import Logging
import Telemetry

extension OccasionalLog {
  /// A log of events that are timed by `BootInstant`.
  ///
  /// - Parameters:
  ///   - recorder: gets what is not in the log yet, when `recordCounts` is called.
  ///   - loop: the loop that tells how often something has happened.
  public convenience init(_ logger: Logger, recorder: FlightRecorder? = nil, on loop: EventLoop) {
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

extension Forwarder {
  /// Tells the log and the recorder what has been counted and not told yet. Resolver's loop only.
  public func tellCounts() {
    watch.flush(at: loop.now)
    occasional.recordCounts()
  }
}
