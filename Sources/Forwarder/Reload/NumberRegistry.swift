// NumberRegistry.swift -- numbers that identify routes and providers across reloads: one meaning each, while in use.

import Frontend
import Resolver

/// Assigns numbers to meanings.
///
/// A number keeps its meaning from one configuration to the next. A number without a meaning is *retired*: it is not
/// assigned again until the caller has made sure that nothing carries it any more.
struct NumberRegistry<Meaning: Hashable & Sendable>: Sendable {
  private let range: ClosedRange<Int>
  /// The current meanings and their numbers.
  private(set) var numbers: [Meaning: Int] = [:]
  /// Numbers without a current meaning.
  private(set) var retired: Set<Int> = []

  init(_ range: ClosedRange<Int>) { self.range = range }

  /// Replaces the current meanings: each that was there before keeps its number.
  ///
  /// - Parameter kin: what must be equal for one meaning to take over another one's number.
  /// - Returns: a number for each; nil if there are not enough, in which case nothing changes.
  mutating func assign<Kin: Hashable>(_ meanings: [Meaning], kin: (Meaning) -> Kin) -> [Int]? {
    var assigned: [Meaning: Int] = [:]
    for meaning in meanings { assigned[meaning] = numbers[meaning] }
    var left: [Kin: [Int]] = [:]
    for (meaning, number) in numbers where assigned[meaning] == nil { left[kin(meaning), default: []].append(number) }
    for kin in left.keys { left[kin]?.sort(by: >) }
    var unused = range.lowerBound
    let taken = retired.union(numbers.values)
    for meaning in meanings where assigned[meaning] == nil {
      if let number = left[kin(meaning)]?.popLast() {
        assigned[meaning] = number
        continue
      }
      while taken.contains(unused) { unused += 1 }
      guard unused <= range.upperBound else { return nil }
      assigned[meaning] = unused
      unused += 1
    }
    retired.formUnion(Set(numbers.values).subtracting(assigned.values))
    numbers = assigned
    return meanings.map { assigned[$0]! }
  }

  /// Allows those numbers to be assigned again: nothing carries them any more.
  mutating func release(_ numbers: Set<Int>) { retired.subtract(numbers) }
}

/// What a route's number stands for.
struct RouteMeaning: Hashable, Sendable {
  /// The servers that are asked, in order.
  var source: String
  /// How the answers are treated.
  var terms: Terms

  /// What the entries of a route depend on, besides their source.
  struct Terms: Hashable, Sendable {
    var ttl: TTLBounds
    var stale: StalePolicy
    var filtersPrivate: Bool
    var belongsToNetwork: Bool
    var sets: RouteSets?
  }

  init(_ route: Route, providers: [String]) {
    source = route.meaning(providers)
    terms = Terms(
      ttl: route.ttl, stale: route.stale, filtersPrivate: route.filtersPrivate,
      belongsToNetwork: route.belongsToNetwork, sets: route.sets)
  }
}

/// The numbers of routes and providers in a running daemon.
struct ServiceNumbers: Sendable {
  /// The routes of rules; the fixed routes have fixed numbers.
  var routes = NumberRegistry<RouteMeaning>(Int(Route.Number.firstRule)...Int(UInt16.max))
  /// Providers, by name and service.
  var providers = NumberRegistry<String>(0...Int(UInt16.max))
  /// The counters of rules, by name, or by position where a rule has none.
  var rules = RuleNames()
}
