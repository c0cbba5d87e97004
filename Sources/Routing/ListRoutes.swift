// ListRoutes.swift -- what the lists of rules decide: the second walk over a name's labels, after that over `names`.
//
// The first walk ends at a choice, which says which rule decides by its `names`. Only rules before that one may still take
// the name by a list.

import DNSWire
import Lists

/// What lists decide. The table of routes keeps the table of lists, and frees the rest.
struct ListRoutes {
  /// Nil if no rule has lists.
  private let names: ListLookup?
  /// By the number of a use.
  private let decisions: UnsafeMutablePointer<RouteChoice>
  /// The uses by rules that say "as without rules".
  private let standardUses: UInt64
  /// The route of names below search domains of the network; 0 without one.
  private let searchRoute: UInt32

  init(_ table: ListTable?, _ compiler: inout RouteCompiler, _ rules: [RouteRule], searchRoute: UInt16?) {
    self.searchRoute = UInt32(searchRoute ?? 0)
    names = table?.lookup
    decisions = RouteTable.copy(compiler.uses.indices.map { compiler.choice(ofUse: $0) })
    standardUses = compiler.uses { if case .standard = rules[$0].action { true } else { false } }
  }

  func deallocate() { decisions.deallocate() }

  /// What the first list decides that has the name in a rule before the one that decides by `names`; else what that one
  /// decides.
  ///
  /// - Parameters:
  ///   - isSearched: whether the name is below a search domain of the network.
  ///   - starts: the offsets of the labels.
  @_noAllocation @inline(__always)
  func find(
    _ byNames: TypeChoice, isSearched: Bool, for type: UInt16, _ name: UnsafePointer<UInt8>,
    _ starts: borrowing InlineArray<128, UInt8>, labels: Int
  ) -> RouteFinding {
    guard let names else { return byNames.finding }
    let uses = names.uses(of: name, starts, labels: labels) & byNames.lists
    guard uses != 0 else { return byNames.finding }
    let use = uses.trailingZeroBitCount
    var choice = decisions[use].choice(for: type)
    if isSearched, searchRoute != 0, standardUses & 1 << UInt64(use) != 0 { choice.decision = searchRoute }
    return choice.finding
  }
}
