// StandardErrorLog.swift -- swift-log's handler: one line per event on stderr, for journals and container logs.

import Logging

/// A log handler that writes one line per event, `TIME LEVEL message key=value …` or a JSON object, and feeds the flight
/// recorder.
public struct StandardErrorLog: LogHandler {
  /// Values added to every event.
  public var metadata: Logger.Metadata = [:]
  /// The lowest level that the handler receives: the shared threshold, or `debug` if there is a recorder.
  public var logLevel: Logger.Level {
    get { ownLevel ?? (output.recorder == nil ? output.threshold.level : min(output.threshold.level, .debug)) }
    set { ownLevel = newValue }
  }
  private var ownLevel: Logger.Level?
  private let output: LogOutput

  public init(_ output: LogOutput) { self.output = output }

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
