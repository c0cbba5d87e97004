// Mistake.swift -- what is wrong or doubtful in a configuration, one line each.

/// One mistake in a configuration file. No part of it holds the value of a secret.
public struct Mistake: Hashable, Sendable {
  /// Where in the file a mistake is.
  public enum Location: Hashable, Sendable {
    /// The file as a whole.
    case file
    /// A line and a column, both from 1: the text is not TOML.
    case position(line: Int, column: Int)
    /// A key path such as `provider["alidns"].servers[0]`.
    case key(String)
  }

  /// How the line is worded.
  public enum Wording: Hashable, Sendable {
    /// About a value: `found X; allowed: Y`.
    case value
    /// About something that is missing or cannot be used: `X; Y`.
    case failure
  }

  /// The file's name as the caller gave it.
  public let file: String
  /// Where in the file.
  public let location: Location
  /// What was found there, or what is wrong there.
  public let found: String
  /// What is allowed there, or what to do.
  public let allowed: String
  /// How the line is worded.
  public let wording: Wording
}

extension Mistake: CustomStringConvertible {
  /// One line: file, place, what was found, what is allowed.
  public var description: String {
    let text =
      switch wording {
      case .value: "found \(found); allowed: \(allowed)"
      case .failure: "\(found); \(allowed)"
      }
    return switch location {
    case .file: "\(shownText(file)): \(text)"
    case .position(let line, let column): "\(shownText(file)):\(line):\(column): \(text)"
    case .key(let path): "\(shownText(file)): \(path): \(text)"
    }
  }
}

/// Something that is accepted, but that its author should know. No part of it holds the value of a secret.
public struct Warning: Hashable, Sendable {
  /// The file's name as the caller gave it.
  public let file: String
  /// The key path.
  public let key: String
  /// What is doubtful about it.
  public let text: String
}

extension Warning: CustomStringConvertible {
  /// One line: file, key path, what is doubtful.
  public var description: String { "\(shownText(file)): \(key): \(text)" }
}

/// A configuration that was not accepted.
public struct Mistakes: Error, Hashable, Sendable, CustomStringConvertible {
  /// All mistakes that could be found in one go; never empty.
  public let mistakes: [Mistake]
  /// What else was noticed.
  public let warnings: [Warning]

  /// One line for each mistake.
  public var description: String { mistakes.map(\.description).joined(separator: "\n") }
}
