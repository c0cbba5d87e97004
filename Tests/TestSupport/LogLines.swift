// LogLines.swift -- a logger that remembers.

import Logging
import Synchronization

/// The lines that a logger got, from any thread.
public final class LogLines: Sendable {
  private let lines = Mutex<[String]>([])

  /// Nothing so far.
  public init() {}

  /// A level and a message each, such as `warning it failed`.
  public var all: [String] { lines.withLock { $0 } }

  /// A logger of every level.
  public var logger: Logger { Logger(label: "test") { _ in Recorder(lines: self) } }

  private struct Recorder: LogHandler {
    let lines: LogLines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.lines.withLock { $0.append("\(event.level) \(event.message)") } }
  }
}
