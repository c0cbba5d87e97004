// LogLine.swift -- an event as one line: plain text or a JSON object.

import JSON
import Logging

/// The format of log lines.
public enum LogFormat: String, CaseIterable, Sendable {
  /// `TIME LEVEL message key=value …`
  case text
  /// `{"time":…,"level":…,"message":…,"key":…}`
  case json
}

/// A value attached to an event.
public enum LogValue: Sendable, Equatable {
  case text(String)
  /// A number as text, which must be a valid JSON number.
  case number(String)
  case list([LogValue])
  /// Named values.
  case fields([LogField])
}

/// A named value of an event.
public struct LogField: Sendable, Equatable {
  /// The name.
  public var key: String
  public var value: LogValue

  public init(_ key: String, _ value: LogValue) {
    self.key = key
    self.value = value
  }
}

/// An event to be written as one line.
public struct LogLine: Sendable {
  /// The wall-clock time.
  public var time: LogTime
  public var level: Logger.Level
  /// What happened, without the values.
  public var message: String
  /// The values after the message, in this order.
  public var fields: [LogField]

  public init(time: LogTime, level: Logger.Level, message: String, fields: [LogField] = []) {
    self.time = time
    self.level = level
    self.message = message
    self.fields = fields
  }

  /// The line, including its line break.
  ///
  /// - Parameter isJournal: whether the reader is the journal, which takes the level from a `<N>` prefix (sd-daemon(3)) and
  ///   records the time itself.
  public func written(as format: LogFormat, isJournal: Bool) -> String {
    var line = isJournal ? "<\(priority)>" : ""
    switch format {
    case .text:
      if !isJournal { line += "\(time.text) \(level.rawValue.uppercased()) " }
      line += words
    case .json: line += json
    }
    return line + "\n"
  }

  /// Message and values on one line, without time and level.
  var words: String {
    var text = clean(message)
    for field in fields { text += " \(clean(field.key))=\(clean(field.value.words))" }
    return text
  }

  /// The keys of every object; a field with such a name gets a trailing underscore.
  private static let reserved: Set<String> = ["time", "level", "message"]

  private var json: String {
    var text = "{\"time\":\"\(time.text)\",\"level\":\"\(level.rawValue)\",\"message\":"
    JSONText.append(message, to: &text)
    for field in fields {
      text += ","
      JSONText.append(LogLine.reserved.contains(field.key) ? "\(field.key)_" : field.key, to: &text)
      text += ":"
      text += field.value.json
    }
    return text + "}"
  }

  private var priority: Int {
    switch level {
    case .trace, .debug: 7
    case .info: 6
    case .notice: 5
    case .warning: 4
    case .error: 3
    case .critical: 2
    }
  }

  /// Replaces control characters: a line break would split the event, and others control terminals.
  private func clean(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: \.isControl) else { return text }
    return String(String.UnicodeScalarView(text.unicodeScalars.map { $0.isControl ? " " : $0 }))
  }
}

extension LogValue {
  var words: String {
    switch self {
    case .text(let text), .number(let text): text
    case .list(let values): "[\(values.map(\.words).joined(separator: ", "))]"
    case .fields(let fields): "[\(fields.map { "\($0.key): \($0.value.words)" }.joined(separator: ", "))]"
    }
  }

  var json: String {
    switch self {
    case .text(let text): JSONText.string(text)
    case .number(let digits): digits
    case .list(let values): JSONText.array(values.map(\.json))
    case .fields(let fields): JSONText.object(fields.map { ($0.key, $0.value.json) })
    }
  }

  /// A metadata value of swift-log; dictionaries are sorted by key.
  init(_ value: Logger.MetadataValue) {
    switch value {
    case .string(let text): self = .text(text)
    case .stringConvertible(let value): self = .text("\(value)")
    case .array(let values): self = .list(values.map { LogValue($0) })
    case .dictionary(let values): self = .fields(LogField.sorted(values))
    }
  }
}

extension LogField {
  /// The metadata of swift-log, sorted by key.
  static func sorted(_ metadata: Logger.Metadata) -> [LogField] {
    metadata.sorted { $0.key < $1.key }.map { LogField($0.key, LogValue($0.value)) }
  }
}
