// NumberRegistry.swift -- numbers that what is kept beyond a reload is known by: one meaning each, as long as it counts.

import Resolver

/// Numbers and what they stand for.
///
/// A number stands for the same from one configuration to the next. What it stands for no more is *retired*, and given to
/// nothing else until somebody has made sure that nothing carries it any more.
struct NumberRegistry<Meaning: Hashable & Sendable>: Sendable {
  private let range: ClosedRange<Int>
  /// What counts now.
  private(set) var numbers: [Meaning: Int] = [:]
  /// Numbers of what does not count any more.
  private(set) var retired: Set<Int> = []

  /// A registry of which no number is used.
  init(_ range: ClosedRange<Int>) { self.range = range }

  /// Takes those meanings in the place of the ones before: each that was there keeps its number.
  ///
  /// - Parameter kin: what has to be the same for one meaning to take over another one's number.
  /// - Returns: a number for each; nil where there are not enough, and nothing has changed then.
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

  /// Nothing carries those numbers any more.
  mutating func release(_ numbers: Set<Int>) { retired.subtract(numbers) }
}

/// What a route stands for.
struct RouteMeaning: Hashable, Sendable {
  /// Who is asked, in which order.
  var source: String
  /// What becomes of the answers.
  var terms: Terms

  /// What the entries of a route depend on, beside who gave them.
  struct Terms: Hashable, Sendable {
    var ttl: TTLBounds
    var stale: StalePolicy
    var filtersPrivate: Bool
    var belongsToNetwork: Bool
  }

  init(_ route: Route, providers: [String]) {
    source = route.meaning(providers)
    terms = Terms(
      ttl: route.ttl, stale: route.stale, filtersPrivate: route.filtersPrivate,
      belongsToNetwork: route.belongsToNetwork)
  }
}

/// The numbers of a running program: of routes and of providers.
struct ServiceNumbers: Sendable {
  /// The routes of rules; the fixed ones have their own.
  var routes = NumberRegistry<RouteMeaning>(Int(Route.Number.firstRule)...Int(UInt16.max))
  /// Providers, by name and service.
  var providers = NumberRegistry<String>(0...Int(UInt16.max))
}
