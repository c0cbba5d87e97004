// ListRoutes.swift -- what the lists of rules decide: the second walk over a name's labels, after that over `names`.
//
// The first walk ends at a choice, which says which rule decides by its `names`. Only rules before that one may still take
// the name by a list.

import DNSWire
import Lists

/// What lists decide. The table of routes keeps the table of lists, and frees the rest.
struct ListRoutes {
  /// Whether a rule has lists.
  let isUsed: Bool
  private let names: ListLookup?
  /// For each class of clients, the uses that count, by type in the order of `TypeCategory`.
  private let masks: UnsafeMutablePointer<UInt64>
  /// By the number of a use.
  private let decisions: UnsafeMutablePointer<RouteChoice>
  /// The uses by rules that say "as without rules".
  private let standardUses: UInt64
  /// The route of names below search domains of the network; 0 without one.
  private let searchRoute: UInt32

  init(_ table: ListTable?, _ compiler: inout RouteCompiler, _ rules: [RouteRule], searchRoute: UInt16?) {
    self.searchRoute = UInt32(searchRoute ?? 0)
    let uses = table == nil ? [] : compiler.uses
    isUsed = !uses.isEmpty
    names = table?.lookup
    func mask(_ isIn: (RouteRule, Int) -> Bool) -> UInt64 {
      uses.indices.reduce(0) { isIn(rules[uses[$1]], uses[$1]) ? $0 | 1 << UInt64($1) : $0 }
    }
    let classes = compiler.classes
    masks = RouteTable.copy(
      (0..<classes.count).flatMap { group in
        TypeCategory.allCases.map { type in
          mask { rule, index in rule.isFor(type) && classes.counts(index, rule, for: group) }
        }
      })
    decisions = RouteTable.copy(uses.indices.map { compiler.choice(ofUse: $0) })
    standardUses = mask { rule, _ in if case .standard = rule.action { true } else { false } }
  }

  func deallocate() {
    masks.deallocate()
    decisions.deallocate()
  }

  /// What the first list decides that has the name in a rule before the one that decides by `names`; else what that one
  /// decides.
  ///
  /// - Parameters:
  ///   - isSearched: whether the name is below a search domain of the network.
  ///   - starts: the offsets of the labels.
  @_noAllocation @inline(__always)
  func find(
    _ byNames: TypeChoice, isSearched: Bool, for type: UInt16, from group: Int, _ name: UnsafePointer<UInt8>,
    _ starts: borrowing InlineArray<128, UInt8>, labels: Int
  ) -> RouteFinding {
    let category =
      switch type {
      case RecordType.a.rawValue: 0
      case RecordType.aaaa.rawValue: 1
      case RecordType.ptr.rawValue: 2
      case RecordType.svcb.rawValue, RecordType.https.rawValue: 3
      default: 4
      }
    // The lowest bits; a shift by 64 gives 0.
    let counting = masks[group &* 5 &+ category] & ~(~UInt64(0) << UInt64(byNames.bound))
    guard counting != 0, let names else { return byNames.finding }
    let uses = names.uses(of: name, starts, labels: labels) & counting
    guard uses != 0 else { return byNames.finding }
    let use = uses.trailingZeroBitCount
    var choice = decisions[use].choice(for: type)
    if isSearched, searchRoute != 0, standardUses & 1 << UInt64(use) != 0 { choice.decision = searchRoute }
    return choice.finding
  }
}
