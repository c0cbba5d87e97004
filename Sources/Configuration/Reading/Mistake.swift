// Mistake.swift -- errors and warnings about a configuration, one line each.

/// One mistake in a configuration. It never contains a secret.
public struct Mistake: Hashable, Sendable {
  /// A position in the file.
  public enum Location: Hashable, Sendable {
    /// The file as a whole.
    case file
    /// A line and a column, counted from 1: the text is not valid TOML.
    case position(line: Int, column: Int)
    /// A key path such as `provider["alidns"].servers[#1]`.
    case key(String)
  }

  /// How `found` and `allowed` form one sentence.
  public enum Wording: Hashable, Sendable {
    /// `found` says what is wrong, `allowed` describes a correct value: `X is not valid; expected Y`.
    case value
    /// `found` says what is wrong, `allowed` what to do about it: `X; Y`. An empty `allowed` is left out.
    case failure
  }

  /// The file's name as the caller gave it, or `environment`.
  public let file: String
  /// The position in the file.
  public let location: Location
  /// What is wrong there.
  public let found: String
  /// A correct value, or a remedy: see `Wording`.
  public let allowed: String
  /// How `found` and `allowed` are joined.
  public let wording: Wording
}

extension Mistake: CustomStringConvertible {
  /// One line: file, position, what is wrong, what is expected.
  public var description: String {
    let text =
      switch wording {
      case .value: "\(found); expected \(allowed)"
      case .failure: allowed.isEmpty ? found : "\(found); \(allowed)"
      }
    return switch location {
    case .file: "\(shownText(file)): \(text)"
    case .position(let line, let column): "\(shownText(file)):\(line):\(column): \(text)"
    case .key(let path): "\(shownText(file)): \(path): \(text)"
    }
  }
}

/// A remark on a setting that is accepted but probably not intended. It never contains a secret.
public struct Warning: Hashable, Sendable {
  /// The file's name as the caller gave it, or `environment`.
  public let file: String
  /// The key path.
  public let key: String
  /// The remark.
  public let text: String
}

extension Warning: CustomStringConvertible {
  /// One line: file, key path, remark.
  public var description: String { "\(shownText(file)): \(key): \(text)" }
}

/// The reasons why a configuration was rejected.
public struct Mistakes: Error, Hashable, Sendable, CustomStringConvertible {
  /// All mistakes that one pass found; never empty.
  public let mistakes: [Mistake]
  /// The warnings of the same pass.
  public let warnings: [Warning]

  /// One line for each mistake.
  public var description: String { mistakes.map(\.description).joined(separator: "\n") }
}
