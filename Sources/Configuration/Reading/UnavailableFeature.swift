// UnavailableFeature.swift -- keys whose feature this version does not have.

/// A documented key whose feature does not exist yet: only its default is accepted.
///
/// To add the feature, remove its line here; nothing else in this module changes.
enum UnavailableFeature {
  /// Key path → the missing feature. A path ends in `=value` where only that value is unsupported.
  private static let table: [String: String] = [
    "cache.redis": "the cache has no second level"
  ]

  /// The reason why the key or this value of it is not supported; nil if it is.
  static func needs(of place: ValuePath, _ value: Value) -> String? {
    if let needs = table[place.pattern] { return needs }
    guard let line = value.line else { return nil }
    return table["\(place.pattern)=\(line)"]
  }
}
