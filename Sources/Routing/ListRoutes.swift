// ListRoutes.swift -- what the lists of rules decide: the second walk over a name's labels, after that over `names`.
//
// The first walk ends at a choice, which says which rule decides by its `names`. Only rules before that one may still take
// the name by a list.

import DNSWire
import Lists

/// How many uses of lists may decide for a name, by type: those of the rules before the rule that decides by `names`.
struct ListBounds: Hashable {
  var a: UInt8
  var aaaa: UInt8
  var pointer: UInt8
  var service: UInt8
  var other: UInt8
  /// The decision of a rule that says "as without rules"; nil for that rule's own route.
  var standard: UInt32?

  init(highest: Int) {
    let highest = UInt8(highest)
    (a, aaaa, pointer, service, other) = (highest, highest, highest, highest, highest)
  }
}

/// The decisions by `names`, and what lists must beat.
struct BoundedChoice: Hashable {
  var choice: RouteChoice
  var bounds: ListBounds
}

/// What lists decide. The table of routes keeps the table of lists, and frees the rest.
struct ListRoutes {
  /// Whether a rule has lists.
  let isUsed: Bool
  private let names: ListLookup?
  /// In the order of the choices.
  private let bounds: UnsafeMutablePointer<ListBounds>
  /// For each class of clients, the uses that count, by type in the order of `TypeCategory`.
  private let masks: UnsafeMutablePointer<UInt64>
  /// By the number of a use.
  private let decisions: UnsafeMutablePointer<RouteChoice>
  /// The uses by rules that say "as without rules".
  private let standardUses: UInt64

  init(_ table: ListTable?, _ compiler: inout RouteCompiler, _ rules: [RouteRule]) {
    let uses = table == nil ? [] : compiler.uses
    isUsed = !uses.isEmpty
    names = table?.lookup
    bounds = RouteTable.copy(uses.isEmpty ? [] : compiler.choices.values.flatMap { $0.map(\.bounds) })
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
    bounds.deallocate()
    masks.deallocate()
    decisions.deallocate()
  }

  /// The decision of the first list that has the name in a rule before that one which decides by `names`; nil without one.
  ///
  /// - Parameters:
  ///   - place: the place of the choice by `names`.
  ///   - starts: the offsets of the labels.
  @_noAllocation @inline(__always)
  func decision(
    at place: Int, for type: UInt16, from group: Int, _ name: UnsafePointer<UInt8>,
    _ starts: borrowing InlineArray<128, UInt8>, labels: Int
  ) -> RouteDecision? {
    let bounds = bounds[place]
    let (bound, category) =
      switch type {
      case RecordType.a.rawValue: (bounds.a, 0)
      case RecordType.aaaa.rawValue: (bounds.aaaa, 1)
      case RecordType.ptr.rawValue: (bounds.pointer, 2)
      case RecordType.svcb.rawValue, RecordType.https.rawValue: (bounds.service, 3)
      default: (bounds.other, 4)
      }
    // The lowest bits; a shift by 64 gives 0.
    let counting = masks[group &* 5 &+ category] & ~(~UInt64(0) << UInt64(bound))
    guard counting != 0, let names else { return nil }
    let uses = names.uses(of: name, starts, labels: labels) & counting
    guard uses != 0 else { return nil }
    let use = uses.trailingZeroBitCount
    if standardUses & 1 << UInt64(use) != 0, let standard = bounds.standard { return RouteChoice.decision(standard) }
    return decisions[use].decision(for: type)
  }
}
