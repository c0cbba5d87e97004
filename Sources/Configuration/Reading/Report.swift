// Report.swift -- collects the mistakes and warnings of one reading.

/// The mistakes and warnings found so far. Lives for one call of `Configuration.parse`, on its thread.
final class Report {
  /// More than these are not listed: nobody reads them, and a hostile file has a hundred thousand.
  static let maxMistakes = 1000

  let file: String
  /// Gives the value of an environment variable.
  let environment: Configuration.Environment
  private var recorded: [Mistake] = []
  private var hasOmitted = false
  private(set) var warnings: [Warning] = []
  /// The keys that name a file with a secret which could be read.
  private(set) var secretFiles: [String] = []
  /// Key path → the environment variable that took its place.
  private var variables: [String: String] = [:]

  init(file: String, environment: @escaping Configuration.Environment) {
    self.file = file
    self.environment = environment
  }

  /// Records a mistake; `found` must be fit to be shown.
  func refuse(_ found: String, at place: Place, allowed: String, _ wording: Mistake.Wording = .value) {
    guard !isFull else {
      hasOmitted = true
      return
    }
    let origin = origin(of: place)
    recorded.append(
      Mistake(file: origin.file, location: .key(origin.path), found: found, allowed: allowed, wording: wording))
  }

  /// Whether no more mistakes are recorded.
  var isFull: Bool { recorded.count >= Report.maxMistakes }

  /// All mistakes; where there are too many, the last one says so.
  var mistakes: [Mistake] {
    guard hasOmitted else { return recorded }
    let last = Mistake(
      file: file, location: .file, found: "more mistakes than are listed", allowed: "none", wording: .value)
    return recorded + [last]
  }

  /// Records that a value is not what is allowed in its place.
  func refuse(_ value: Value, at place: Place, allowed: String) {
    refuse(value.shown(at: place), at: place, allowed: allowed)
  }

  /// Records a warning; `text` must be fit to be shown.
  func warn(_ text: String, at place: Place) {
    let origin = origin(of: place)
    warnings.append(Warning(file: origin.file, key: origin.path, text: text))
  }

  /// Records that the file with a secret could be read; what stands at the key is not shown.
  func didReadSecret(at place: Place) { secretFiles.append(place.text) }

  /// Records a warning about a variable of the environment.
  func warn(_ text: String, ofVariable name: String) {
    warnings.append(Warning(file: "environment", key: shownText(name, limit: shownLimit), text: text))
  }

  /// From now on what is said about a key, or about what is in it, is said about a variable.
  func take(_ pattern: String, from variable: String) { variables[pattern] = variable }

  /// From now on what is said about a key is said about the file again: the variable was a mistake, and its value stays.
  func giveBack(_ pattern: String) { variables[pattern] = nil }

  /// Where a place is: in the file, or in the environment.
  private func origin(of place: Place) -> (file: String, path: String) {
    for (pattern, variable) in variables where place.pattern == pattern || place.pattern.hasPrefix("\(pattern).") {
      return ("environment", variable + place.text.dropFirst(pattern.count))
    }
    return (file, place.text)
  }
}
