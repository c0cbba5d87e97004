// LogControl.swift -- runs the log of the daemon: slow readers, SIGUSR2, and the settings of [log].
//
// Resolver's loop only, or before it runs.

import Configuration
import EventLoop
import Forwarder
import Frontend
import Glibc
import Logging
import Telemetry

final class LogControl: @unchecked Sendable {
  private let log: LogOutput
  private let forwarder: Forwarder
  private let retries: LogRetries
  private let retryTimer = OwnedTimer()
  private let dumpTimer = OwnedTimer()
  private var dumpSignal: LoopEvent?
  /// The part of a dump that is still to be written.
  private var dump: ArraySlice<RecordedEvent> = []

  /// The pause before a write to a slow reader is tried again, or a dump continues.
  private static let retryPause = Duration.milliseconds(50)
  /// The events of a dump that are written in one turn of the loop; they take less than a millisecond.
  private static let portion = 64

  init(_ log: LogOutput, _ forwarder: Forwarder) {
    self.log = log
    self.forwarder = forwarder
    retries = LogRetries(attempt: log.retry) { [retryTimer, loop = forwarder.loop] action in
      retryTimer.set(after: LogControl.retryPause, on: loop, action)
    }
    log.whenBehind { [weak self, loop = forwarder.loop] in
      loop.execute { [weak self] in self?.retries.begin() }
    }
    retries.begin()
    dumpSignal = LoopEvent(on: forwarder.loop, signal: SIGUSR2) { [weak self] in self?.startDump() }
  }

  func follow(_ settings: Configuration.Log) {
    forwarder.loop.assertCurrent()
    log.threshold.level = settings.level
    log.format = settings.format
    forwarder.queryLog.setOn(settings.queries, writingTo: log)
  }

  /// Starts writing the flight recorder to the log; does nothing while a dump is in progress.
  private func startDump() {
    guard dump.isEmpty else { return }
    forwarder.flushCounts()
    guard let events = log.recorder?.events, let first = events.first else { return }
    write("\(events.count) events since \(first.time.text)")
    dump = events[...]
    goOn()
  }

  private func goOn() {
    for event in dump.prefix(LogControl.portion) {
      switch log.format {
      case .text: write("\(event.time.text) \(event.level.rawValue.uppercased()) \(event.text)")
      case .json:
        write(
          event.text,
          [LogField("event_time", .text(event.time.text)), LogField("event_level", .text(event.level.rawValue))])
      }
    }
    dump = dump.dropFirst(LogControl.portion)
    guard !dump.isEmpty else { return write("end of dump") }
    // A slow reader gets the rest later and loses nothing.
    schedule()
  }

  private func schedule() {
    dumpTimer.set(after: log.hasRoom ? .milliseconds(1) : LogControl.retryPause, on: forwarder.loop, for: self) {
      if $0.log.hasRoom { $0.goOn() } else { $0.schedule() }
    }
  }

  private func write(_ text: String, _ fields: [LogField] = []) {
    log.write(LogLine(time: .now, level: .info, message: "flight recorder: \(text)", fields: fields))
  }
}
