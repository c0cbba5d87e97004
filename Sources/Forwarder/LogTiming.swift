// LogTiming.swift -- times `OccasionalLog` by an event loop, and flushes its pending counts before a dump.

import EventLoop
import Frontend
import Logging
import Telemetry

extension OccasionalLog {
  /// A log of events that are timed by `BootInstant`.
  ///
  /// - Parameters:
  ///   - recorder: receives what is not in the log yet when `recordCounts` is called.
  ///   - loop: the loop on which the log reports how often an event has happened.
  package convenience init(_ logger: Logger, recorder: FlightRecorder? = nil, on loop: EventLoop) {
    // Only on the loop.
    nonisolated(unsafe) let alarms = TimerGroup()
    self.init(logger, recorder: recorder) { deadline, action in
      loop.execute {
        alarms.add(at: BootInstant(nanoseconds: deadline), on: loop) { action(BootInstant.now.nanoseconds) }
      }
    }
  }
}

extension Forwarder {
  /// Writes pending counts to the log and to the recorder. Resolver's loop only.
  package func flushCounts() {
    watch.flush(at: loop.now)
    occasional.recordCounts()
  }
}
