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

  init(file: String, environment: @escaping Configuration.Environment) {
    self.file = file
    self.environment = environment
  }

  /// Records a mistake; `found` must be fit to be shown.
  func refuse(_ found: String, at place: Place, allowed: String) {
    guard !isFull else {
      hasOmitted = true
      return
    }
    recorded.append(Mistake(file: file, location: .key(place.text), found: found, allowed: allowed))
  }

  /// Whether no more mistakes are recorded.
  var isFull: Bool { recorded.count >= Report.maxMistakes }

  /// All mistakes; where there are too many, the last one says so.
  var mistakes: [Mistake] {
    guard hasOmitted else { return recorded }
    return recorded + [Mistake(file: file, location: .file, found: "more mistakes than are listed", allowed: "none")]
  }

  /// Records that a value is not what is allowed in its place.
  func refuse(_ value: Value, at place: Place, allowed: String) {
    refuse(value.shown(at: place), at: place, allowed: allowed)
  }

  /// Records a warning; `text` must be fit to be shown.
  func warn(_ text: String, at place: Place) {
    warnings.append(Warning(file: file, key: place.text, text: text))
  }
}
