// StandardErrorLog.swift -- one line an event on stderr: what the journal and a container's log expect.

import Logging

/// A log handler that writes `TIME LEVEL message key=value …` or a JSON object, one line an event, and tells the flight
/// recorder.
public struct StandardErrorLog: LogHandler {
  /// Values that go with every event.
  public var metadata: Logger.Metadata = [:]
  /// The events that it takes: from the level on that all share, or from `debug` on where a recorder wants them.
  public var logLevel: Logger.Level {
    get { ownLevel ?? (output.recorder == nil ? output.threshold.level : min(output.threshold.level, .debug)) }
    set { ownLevel = newValue }
  }
  private var ownLevel: Logger.Level?
  private let output: LogOutput

  /// A handler that writes to the program's log.
  public init(_ output: LogOutput) { self.output = output }

  /// A value of the metadata by its key.
  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  /// Writes and records one event.
  public func log(event: LogEvent) {
    var fields: [LogField] = []
    if let error = event.error { fields.append(LogField("error", .text("\(error)"))) }
    let values = event.metadata.map { metadata.merging($0) { $1 } } ?? metadata
    fields += LogField.sorted(values).filter { event.error == nil || $0.key != "error" }
    let line = LogLine(time: .now, level: event.level, message: "\(event.message)", fields: fields)
    output.recorder?.record(line.time, line.level, line.words)
    if event.level >= (ownLevel ?? output.threshold.level) { output.write(line) }
  }
}
