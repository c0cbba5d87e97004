// ConfigurationProperty.swift -- a text is a configuration, or mistakes of one line each.

import Configuration

/// The configuration file, secret files that it names included.
public struct ConfigurationProperty: Property {
  /// The fuzz target.
  public static let name = "Configuration"

  /// With whatever it needs set up.
  public init() {}

  /// Throws what does not hold for the input.
  public func check(_ input: [UInt8]) throws(Violation) {
    guard let text = String(validating: input, as: UTF8.self) else { return }
    let first = parse(text)
    try require(parse(text) == first, "the same text has two meanings")
    switch first {
    case .success(let loaded):
      for warning in loaded.warnings { try requireLine(warning.description) }
    case .failure(let failure):
      try require(!failure.mistakes.isEmpty, "refused without a mistake")
      for mistake in failure.mistakes { try requireLine(mistake.description) }
      for warning in failure.warnings { try requireLine(warning.description) }
    }
  }

  private func requireLine(_ text: String) throws(Violation) {
    try require(isOneLine(text), "more than one line: \(text.debugDescription)")
    try require(text.utf8.count < 2000, "a line of \(text.utf8.count) octets")
  }

  private func parse(_ text: String) -> Result<Configuration.Loaded, Mistakes> {
    do throws(Mistakes) {
      return .success(try Configuration.parse(text: text, fileName: "fuzz.toml", environment: { _ in nil }))
    } catch {
      return .failure(error)
    }
  }
}
