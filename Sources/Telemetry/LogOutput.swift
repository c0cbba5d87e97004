// LogOutput.swift -- where all loggers of the program write: level, format, journal or not, and the flight recorder.

import Glibc
import Logging
import Synchronization

/// The log. Level and format may change at any time. Any thread.
public final class LogOutput: Sendable {
  /// Events below its level are not written; the recorder gets them from `debug` on.
  public let threshold: LogThreshold
  /// Remembers the last events; nil where nobody will ask.
  public let recorder: FlightRecorder?
  private let formatSwitch: FormatSwitch
  private let isJournal: Bool
  private let writer: LogWriter

  /// A log that is written to a descriptor.
  ///
  /// - Parameter isJournal: whether the journal reads it.
  public init(
    _ threshold: LogThreshold, _ format: LogFormat = .text, recorder: FlightRecorder? = nil, descriptor: Int32,
    isJournal: Bool
  ) {
    self.threshold = threshold
    self.recorder = recorder
    self.isJournal = isJournal
    let formatSwitch = FormatSwitch(format)
    self.formatSwitch = formatSwitch
    writer = LogWriter(descriptor) { lost in
      LogLine(
        time: .now, level: .warning, message: "\(lost) lines of this log are lost: they were not read in time"
      ).written(as: formatSwitch.format, isJournal: isJournal)
    }
  }

  /// A log on stderr, which is the journal's where systemd says so.
  public convenience init(_ threshold: LogThreshold, _ format: LogFormat = .text, recorder: FlightRecorder? = nil) {
    let stream = getenv("JOURNAL_STREAM").map { String(cString: $0) }
    self.init(
      threshold, format, recorder: recorder, descriptor: 2,
      isJournal: LogOutput.isJournal(stream, descriptor: 2))
  }

  /// How lines are written; another format counts from the next event on.
  public var format: LogFormat {
    get { formatSwitch.format }
    set { formatSwitch.format = newValue }
  }

  /// Writes a line, whatever the level.
  ///
  /// - Returns: whether it was taken: not where the reader is far behind.
  @discardableResult
  public func write(_ line: LogLine, _ importance: LogWriter.Importance = .usual) -> Bool {
    writer.write(line.written(as: format, isJournal: isJournal), importance)
  }

  /// Calls `action` each time when whoever reads begins to be too slow; `retry` has to be called from then on.
  public func whenBehind(_ action: @escaping @Sendable () -> Void) { writer.whenBehind(action) }

  /// Writes what waits; whether nothing waits any more.
  public func retry() -> Bool { writer.retry() }

  /// Whether there is room for many lines.
  public var hasRoom: Bool { writer.hasRoom }

  /// Writes what waits, for no longer than so many milliseconds: at the end of the program.
  public func finish(within milliseconds: Int) { writer.finish(within: milliseconds) }

  /// Whether a descriptor is the one that systemd connected to the journal: the variable names its device and inode, and
  /// is inherited by what was redirected since (systemd.exec(5)).
  static func isJournal(_ stream: String?, descriptor: Int32) -> Bool {
    var status = stat()
    guard let stream, fstat(descriptor, &status) == 0 else { return false }
    return stream == "\(status.st_dev):\(status.st_ino)"
  }
}

/// A format that any thread may change.
private final class FormatSwitch: Sendable {
  private let place: Atomic<Int>

  init(_ format: LogFormat) { place = Atomic(format.rawValue) }

  var format: LogFormat {
    get { LogFormat(rawValue: place.load(ordering: .relaxed)) ?? .text }
    set { place.store(newValue.rawValue, ordering: .relaxed) }
  }
}
