// RuleNames.swift -- the names of rules, by the numbers of their counters.

/// The names of the rules that are counted. A name keeps its number for as long as the process runs, so that a reload does
/// not give one rule the counts of another.
package struct RuleNames: Sendable, Equatable {
  /// The most rules that are counted.
  package static let most = 256

  /// In the order of their numbers.
  package private(set) var names: [String] = []
  private var numbers: [String: UInt16] = [:]

  package init() {}

  /// The number of a rule's counter; nil if there are too many names.
  package mutating func number(of name: String) -> UInt16? {
    if let number = numbers[name] { return number }
    guard names.count < RuleNames.most else { return nil }
    numbers[name] = UInt16(names.count)
    names.append(name)
    return numbers[name]
  }

  /// The name of the rule that has a counter; nil for `RouteFinding.noCounter`.
  package subscript(counter: UInt16) -> String? { Int(counter) < names.count ? names[Int(counter)] : nil }
}
