// ListTable.swift -- all names of all lists in one table of 64 bits a slot, consulted before the cache.
//
// A slot has 48 bits of the keyed hash of a name, and the number of an effect: which uses take the name in or out. Names
// with the same effect share it. No strings: a wrong match needs 48 equal bits in a slot that is looked at, and exact
// strings would cost six times the memory (docs/adr/0048-fingerprints-instead-of-strings.md).
//
// Immutable, and shared by all listener threads.

/// One list in one rule.
public struct ListUse: Hashable, Sendable {
  /// The index of the list.
  public let list: Int
  /// Whether the rule blocks: public suffixes do not count then.
  public let blocks: Bool

  public init(list: Int, blocks: Bool) {
    self.list = list
    self.blocks = blocks
  }
}

/// What a name means for all uses, a bit each.
struct ListEffect: Hashable {
  var subtree: UInt64 = 0
  var alone: UInt64 = 0
  var exceptions: UInt64 = 0

  /// The uses that take the name in or out.
  var all: UInt64 { subtree | alone | exceptions }

  func union(_ other: ListEffect) -> ListEffect {
    ListEffect(
      subtree: subtree | other.subtree, alone: alone | other.alone, exceptions: exceptions | other.exceptions)
  }
}

/// What all lists say about a name, for all listener threads.
public final class ListTable: Sendable {
  /// The most uses of lists.
  public static let maximumUses = 64

  /// The number of different names of each list.
  public let nameCounts: [Int]
  /// For each list, how many of its names the previous table had.
  public let keptCounts: [Int]
  private let key: ListKey
  /// An effect's number in the lowest 16 bits, above it the hash's lowest 48. 0 in a free slot.
  nonisolated(unsafe) private let slots: UnsafeMutablePointer<UInt64>
  private let slotCount: Int
  nonisolated(unsafe) private let effects: UnsafeMutablePointer<ListEffect>

  /// Fills a table.
  ///
  /// - Parameters:
  ///   - lists: read with this key.
  ///   - uses: in the order of the rules, at most 64.
  ///   - previous: the table that this one replaces, and for each list the list that it was there.
  /// - Complexity: O(names)
  public init(_ lists: [ListNames], uses: [ListUse], _ key: ListKey, after previous: Previous? = nil) {
    precondition(uses.count <= ListTable.maximumUses)
    var builder = ListTableBuilder(uses, names: lists.reduce(0) { $0 + $1.count })
    var (nameCounts, keptCounts) = ([Int](), [Int]())
    for (index, list) in lists.enumerated() {
      let former = previous?.lists[index].map { ListTable.mask(of: $0, previous!.uses) } ?? 0
      let counts = builder.add(list, index) { hash in former != 0 && previous!.table.effect(of: hash, has: former) }
      nameCounts.append(counts.names)
      keptCounts.append(counts.kept)
    }
    if builder.isSparse {
      // Lists share names, or have them twice.
      let names = builder.names
      builder.discard()
      builder = ListTableBuilder(uses, names: names)
      for (index, list) in lists.enumerated() { _ = builder.add(list, index) { _ in false } }
    }
    (self.nameCounts, self.keptCounts) = (nameCounts, keptCounts)
    self.key = key
    (slots, slotCount, effects) = builder.finish()
  }

  deinit {
    slots.deallocate()
    effects.deallocate()
  }

  /// The table before a change.
  public struct Previous {
    let table: ListTable
    let uses: [ListUse]
    /// For each list of the new table, its index there.
    let lists: [Int?]

    public init(_ table: ListTable, uses: [ListUse], lists: [Int?]) {
      (self.table, self.uses, self.lists) = (table, uses, lists)
    }
  }

  /// The octets that the table takes.
  public var size: Int { slotCount * MemoryLayout<UInt64>.stride }

  /// The uses of a list that count, a bit each.
  static func mask(of list: Int, _ uses: [ListUse], where counts: (ListUse) -> Bool = { _ in true }) -> UInt64 {
    uses.indices.reduce(0) { uses[$1].list == list && counts(uses[$1]) ? $0 | 1 << UInt64($1) : $0 }
  }

  /// Looks names up; only as long as the table lives.
  public var lookup: ListLookup { ListLookup(key: key, slots: slots, slotCount: slotCount, effects: effects) }

  private func effect(of hash: UInt64, has uses: UInt64) -> Bool {
    effects[lookup.effect(of: hash)].all & uses != 0
  }
}

/// What a listener thread needs of a table, which keeps the memory. Any thread.
public struct ListLookup {
  let key: ListKey
  let slots: UnsafeMutablePointer<UInt64>
  let slotCount: Int
  let effects: UnsafeMutablePointer<ListEffect>

  /// The uses that select a name, a bit each. Any thread; does not allocate.
  ///
  /// - Parameters:
  ///   - name: in lower case, uncompressed.
  ///   - starts: the offsets of its labels.
  /// - Complexity: O(labels)
  @_noAllocation
  public func uses(of name: UnsafePointer<UInt8>, _ starts: borrowing InlineArray<128, UInt8>, labels: Int) -> UInt64 {
    var uses: UInt64 = 0
    var state = key.start
    var depth = labels
    while depth > 0 {
      depth &-= 1
      state = key.extended(state, by: name + Int(starts[depth]))
      let number = effect(of: key.finished(state))
      if number == 0 { continue }
      let effect = effects[number]
      if depth == 0 { uses |= effect.alone }
      uses = (uses | effect.subtree) & ~effect.exceptions
    }
    return uses
  }

  /// The number of a name's effect; 0 without one.
  @_noAllocation @inline(__always)
  func effect(of hash: UInt64) -> Int {
    var place = firstSlot(of: hash, among: slotCount)
    let tag = hash &<< 16
    while slots[place] != 0 {
      let difference = slots[place] ^ tag
      if difference < 1 &<< 16 { return Int(difference) }
      place &+= 1
      if place == slotCount { place = 0 }
    }
    return 0
  }
}

/// The first slot that is looked at; bits of the hash that the slot does not hold count most.
@_noAllocation @inline(__always)
func firstSlot(of hash: UInt64, among slotCount: Int) -> Int {
  Int(truncatingIfNeeded: hash.multipliedFullWidth(by: UInt64(slotCount)).high)
}
