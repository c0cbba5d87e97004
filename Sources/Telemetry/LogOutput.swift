// LogOutput.swift -- the destination of all loggers: level, format, descriptor and flight recorder.

import Glibc
import Logging
import Synchronization

/// The log of the process. Level and format may change at any time. Any thread.
public final class LogOutput: Sendable {
  /// Events below this level are not written. The recorder gets all events of `debug` and above.
  public let threshold: LogThreshold
  /// Keeps the last events for dumps; nil in commands that never dump.
  public let recorder: FlightRecorder?
  private let formatSwitch: FormatSwitch
  private let isJournal: Bool
  private let writer: LogWriter

  /// The descriptor stays the caller's.
  ///
  /// - Parameter isJournal: whether the reader is the journal.
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
        time: .now, level: .warning, message: "\(lost) log lines lost: the reader was too slow"
      ).written(as: formatSwitch.format, isJournal: isJournal)
    }
  }

  /// Creates a log on stderr; `$JOURNAL_STREAM` says whether that is the journal.
  public convenience init(_ threshold: LogThreshold, _ format: LogFormat = .text, recorder: FlightRecorder? = nil) {
    let stream = getenv("JOURNAL_STREAM").map { String(cString: $0) }
    self.init(
      threshold, format, recorder: recorder, descriptor: 2,
      isJournal: LogOutput.isJournal(stream, descriptor: 2))
  }

  /// The format of lines; a change takes effect with the next event.
  public var format: LogFormat {
    get { formatSwitch.format }
    set { formatSwitch.format = newValue }
  }

  /// Writes a line regardless of its level. Never blocks.
  ///
  /// - Returns: false if the line was dropped because the reader is too far behind.
  @discardableResult
  public func write(_ line: LogLine, _ importance: LogWriter.Importance = .usual) -> Bool {
    writer.write(line.written(as: format, isJournal: isJournal), importance)
  }

  /// Sets the action to run whenever the reader falls behind. From then on, call `retry` until it returns true.
  public func whenBehind(_ action: @escaping @Sendable () -> Void) { writer.whenBehind(action) }

  /// Writes buffered lines without blocking. Returns true when the buffer is empty.
  public func retry() -> Bool { writer.retry() }

  /// Whether the buffer has room for many lines.
  public var hasRoom: Bool { writer.hasRoom }

  /// Writes buffered lines and blocks for up to `milliseconds`; for the end of the process.
  public func finish(within milliseconds: Int) { writer.finish(within: milliseconds) }

  /// Whether a descriptor is the one that systemd connected to the journal. The variable names its device and inode, because
  /// a process with a redirected stderr inherits it too (systemd.exec(5)).
  static func isJournal(_ stream: String?, descriptor: Int32) -> Bool {
    var status = stat()
    guard let stream, fstat(descriptor, &status) == 0 else { return false }
    return stream == "\(status.st_dev):\(status.st_ino)"
  }
}

/// A format that any thread may read and change.
private final class FormatSwitch: Sendable {
  private let isJSON: Atomic<Bool>

  init(_ format: LogFormat) { isJSON = Atomic(format == .json) }

  var format: LogFormat {
    get { isJSON.load(ordering: .relaxed) ? .json : .text }
    set { isJSON.store(newValue == .json, ordering: .relaxed) }
  }
}
