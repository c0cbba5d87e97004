// MistakeReport.swift -- collects the mistakes and warnings of one configuration.

/// The mistakes and warnings found so far. Lives for one call of `Configuration.parse`, on its thread.
final class MistakeReport {
  /// Mistakes beyond this number are dropped: a hostile file can have a hundred thousand.
  static let maxMistakes = 1000

  let file: String
  /// Gives the value of an environment variable.
  let environment: Configuration.Environment
  private var recorded: [Mistake] = []
  private var hasOmitted = false
  private(set) var warnings: [Warning] = []
  /// The keys that name a secret file; each of these files was read.
  private(set) var secretFiles: [String] = []
  /// The tables that were read with the keys that each may have, in the order of reading; nil if it is of no interest.
  var tables: [(place: ValuePath, keys: [String])]?
  /// Key path → the environment variable that overrides it.
  private var variables: [String: String] = [:]

  init(file: String, environment: @escaping Configuration.Environment) {
    self.file = file
    self.environment = environment
  }

  /// Records a mistake. The caller makes sure that `found` holds no secret and no control character.
  func refuse(_ found: String, at place: ValuePath, allowed: String, _ wording: Mistake.Wording = .value) {
    guard !isFull else {
      hasOmitted = true
      return
    }
    let origin = origin(of: place)
    recorded.append(
      Mistake(file: origin.file, location: .key(origin.path), found: found, allowed: allowed, wording: wording))
  }

  /// Whether further mistakes are dropped.
  var isFull: Bool { recorded.count >= MistakeReport.maxMistakes }

  /// All recorded mistakes; if some were dropped, the last one says so.
  var mistakes: [Mistake] {
    guard hasOmitted else { return recorded }
    let last = Mistake(
      file: file, location: .file, found: "more mistakes follow", allowed: "correct these first", wording: .failure)
    return recorded + [last]
  }

  /// Records a value that is not allowed: `VALUE PREDICATE; expected ALLOWED`. The value of a secret is not shown.
  func refuse(_ value: Value, is predicate: String = "is not valid", at place: ValuePath, allowed: String) {
    refuse("\(value.shown(at: place)) \(predicate)", at: place, allowed: allowed)
  }

  /// Records a warning. The caller makes sure that `text` holds no secret and no control character.
  func warn(_ text: String, at place: ValuePath) {
    let origin = origin(of: place)
    warnings.append(Warning(file: origin.file, key: origin.path, text: text))
  }

  /// Records the key of a secret file that was read, not its path: people write the secret itself there.
  func didReadSecret(at place: ValuePath) { secretFiles.append(place.text) }

  /// Records a warning about an environment variable.
  func warn(_ text: String, ofVariable name: String) {
    warnings.append(Warning(file: "environment", key: shownText(name, limit: shownLimit), text: text))
  }

  /// Attributes messages about a key, and about everything below it, to an environment variable.
  func take(_ pattern: String, from variable: String) { variables[pattern] = variable }

  /// Attributes messages about a key to the file again: the variable was invalid, so the file's value stays.
  func giveBack(_ pattern: String) { variables[pattern] = nil }

  /// The source of a key, the file or `environment`, and its name there.
  private func origin(of place: ValuePath) -> (file: String, path: String) {
    for (pattern, variable) in variables where place.pattern == pattern || place.pattern.hasPrefix("\(pattern).") {
      return ("environment", variable + place.text.dropFirst(pattern.count))
    }
    return (file, place.text)
  }
}
