// LogLine.swift -- an event as one line: of words, or as a JSON object.

import Logging

/// How lines are written.
public enum LogFormat: Int, CaseIterable, Sendable {
  /// `TIME LEVEL message key=value …`
  case text
  /// `{"time":…,"level":…,"message":…,"key":…}`
  case json
}

/// A value that goes with an event.
public enum LogValue: Sendable, Equatable {
  /// Text.
  case text(String)
  /// A number, in the digits that JSON allows too.
  case number(String)
  /// Several values.
  case list([LogValue])
  /// Values by their names.
  case fields([LogField])
}

/// A named value of an event.
public struct LogField: Sendable, Equatable {
  /// Its name.
  public var key: String
  /// Its value.
  public var value: LogValue

  /// A named value.
  public init(_ key: String, _ value: LogValue) {
    self.key = key
    self.value = value
  }
}

/// An event, ready to be written.
public struct LogLine: Sendable {
  /// When it happened.
  public var time: LogTime
  /// How important it is.
  public var level: Logger.Level
  /// What happened.
  public var message: String
  /// What goes with it, in this order.
  public var fields: [LogField]

  /// An event.
  public init(time: LogTime, level: Logger.Level, message: String, fields: [LogField] = []) {
    self.time = time
    self.level = level
    self.message = message
    self.fields = fields
  }

  /// The line with its line break.
  ///
  /// - Parameter isJournal: whether the journal reads it, which takes the level from a `<N>` before the line (sd-daemon(3))
  ///   and knows the time.
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

  /// Message and values, without time and level.
  var words: String {
    var text = clean(message)
    for field in fields { text += " \(clean(field.key))=\(clean(field.value.words))" }
    return text
  }

  /// The keys that every object begins with; a value of such a name gets an underscore.
  private static let reserved: Set<String> = ["time", "level", "message"]

  private var json: String {
    var text = "{\"time\":\"\(time.text)\",\"level\":\"\(level.rawValue)\",\"message\":"
    JSONText.append(message, to: &text)
    for field in fields {
      text += ","
      JSONText.append(LogLine.reserved.contains(field.key) ? "\(field.key)_" : field.key, to: &text)
      text += ":"
      JSONText.append(field.value, to: &text)
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

  /// A line break would make two events of one, and a control character can do things to a terminal.
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

  /// A value of swift-log; keys in their order.
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
  /// Values of swift-log in the order of their keys.
  static func sorted(_ metadata: Logger.Metadata) -> [LogField] {
    metadata.sorted { $0.key < $1.key }.map { LogField($0.key, LogValue($0.value)) }
  }
}

extension Unicode.Scalar {
  /// C0, DEL, C1, and the separators that some readers take for a line's end.
  var isControl: Bool { value < 0x20 || 0x7F...0x9F ~= value || value == 0x2028 || value == 0x2029 }
}
