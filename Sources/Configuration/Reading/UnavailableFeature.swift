// UnavailableFeature.swift -- the keys that this version knows but cannot honour.

/// A documented key whose feature does not exist yet: only its default is accepted.
///
/// When a feature arrives, its line here goes away; nothing else in this module changes.
enum UnavailableFeature {
  /// Key path → what is missing. A path may end in `=value` where only that value is missing.
  private static let table: [String: String] = [
    "cache.redis": "there is no second level of the cache",
    "ranking.probe": "addresses are not measured",
    "ranking.interval": "addresses are not measured",
    "ranking.domains": "addresses are not measured",
  ]

  /// What is missing for this value in this place; nil where nothing is.
  static func needs(of place: Place, _ value: Value) -> String? {
    if let needs = table[place.pattern] { return needs }
    guard let line = value.line else { return nil }
    return table["\(place.pattern)=\(line)"]
  }
}
