// ListTableBuilder.swift -- fills the slots of a table of lists and numbers the effects.

import Glibc

/// The work of `ListTable.init`.
struct ListTableBuilder: ~Copyable {
  private let uses: [ListUse]
  private let slots: UnsafeMutablePointer<UInt64>
  private let slotCount: Int
  /// The number of different names.
  private(set) var names = 0
  /// The first effect is that of no name.
  private var effects = [ListEffect()]
  private var numbers: [ListEffect: UInt64] = [ListEffect(): 0]
  /// The number of two effects together.
  private var unions: [UInt64: UInt64] = [:]

  /// The highest number of an effect.
  private static let lastEffect = 65_535

  /// - Parameter names: at least the number of different names.
  init(_ uses: [ListUse], names: Int) {
    self.uses = uses
    slotCount = ListTableBuilder.slots(for: names)
    slots = ListTableBuilder.memory(slotCount)
    slots.initialize(repeating: 0, count: slotCount)
    // What each list says alone comes first, so that there is always a number for it.
    for list in Set(uses.map(\.list)) {
      for form in ListForm.allCases {
        for effect in effects(of: list, form) { _ = number(of: effect) }
      }
    }
  }

  /// 7 of 10 slots are taken.
  private static func slots(for names: Int) -> Int { names + names * 3 / 7 + 16 }

  /// Memory for slots, which are read at random: where the table is long, in huge pages if the kernel has them.
  private static func memory(_ slotCount: Int) -> UnsafeMutablePointer<UInt64> {
    let size = slotCount * MemoryLayout<UInt64>.stride
    guard size >= 2 * hugePage else { return .allocate(capacity: slotCount) }
    let memory = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: hugePage)
    madvise(memory, size, MADV_HUGEPAGE)
    return memory.bindMemory(to: UInt64.self, capacity: slotCount)
  }

  private static let hugePage = 2 << 20

  /// Whether the names take much less room than there is.
  var isSparse: Bool { ListTableBuilder.slots(for: names) < slotCount - slotCount / 16 }

  /// Puts what a list says into the slots.
  ///
  /// - Parameter wasKept: whether the previous table had this name in this list.
  /// - Returns: the number of its different names, and of those that the previous table had.
  mutating func add(_ list: ListNames, _ index: Int, wasKept: (UInt64) -> Bool) -> (names: Int, kept: Int) {
    var counts = (names: 0, kept: 0)
    let mask = ListTable.mask(of: index, uses)
    for form in ListForm.allCases {
      for (hashes, effect) in zip([list.names, list.publicSuffixes], effects(of: index, form)) {
        guard let added = number(of: effect), added != 0 else { continue }
        for hash in hashes[Int(form.rawValue)] where add(hash, added, of: mask) {
          counts.names += 1
          if wasKept(hash) { counts.kept += 1 }
        }
      }
    }
    return counts
  }

  /// The storage, which belongs to the caller now.
  consuming func finish() -> (UnsafeMutablePointer<UInt64>, Int, UnsafeMutablePointer<ListEffect>) {
    let copy = UnsafeMutablePointer<ListEffect>.allocate(capacity: effects.count)
    copy.initialize(from: effects, count: effects.count)
    return (slots, slotCount, copy)
  }

  consuming func discard() { slots.deallocate() }

  /// What a list says about a name, and about a public suffix.
  private func effects(of list: Int, _ form: ListForm) -> [ListEffect] {
    [false, true].map { isSuffix in
      let mask = ListTable.mask(of: list, uses) { !(isSuffix && $0.blocks) }
      switch form {
      case .subtree: return ListEffect(subtree: mask)
      case .alone: return ListEffect(alone: mask)
      case .exception: return ListEffect(exceptions: mask)
      }
    }
  }

  /// Adds an effect to a name's.
  ///
  /// - Parameter mask: the uses of the list.
  /// - Returns: whether the list did not have the name yet: it may stand there twice.
  private mutating func add(_ hash: UInt64, _ added: UInt64, of mask: UInt64) -> Bool {
    var place = firstSlot(of: hash, among: slotCount)
    let tag = hash &<< 16
    while slots[place] != 0 {
      let number = slots[place] ^ tag
      if number <= ListTableBuilder.lastEffect {
        let both = union(number, added)
        slots[place] = tag | both
        return both != number && effects[Int(number)].all & mask == 0
      }
      place += 1
      if place == slotCount { place = 0 }
    }
    slots[place] = tag | added
    names += 1
    return true
  }

  private mutating func union(_ left: UInt64, _ right: UInt64) -> UInt64 {
    if left == right { return left }
    if let known = unions[left << 16 | right] { return known }
    let both = number(of: effects[Int(left)].union(effects[Int(right)])) ?? left
    unions[left << 16 | right] = both
    return both
  }

  /// The number of an effect; nil if there are too many, which only lists that share names in 65,535 ways reach. A name
  /// that would need one more keeps what earlier lists say.
  private mutating func number(of effect: ListEffect) -> UInt64? {
    if let number = numbers[effect] { return number }
    guard effects.count <= ListTableBuilder.lastEffect else { return nil }
    let number = UInt64(effects.count)
    effects.append(effect)
    numbers[effect] = number
    return number
  }
}
