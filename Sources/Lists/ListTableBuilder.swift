// ListTableBuilder.swift -- fills the slots of a table of lists and numbers the effects.

/// The work of `ListTable.init`.
struct ListTableBuilder: ~Copyable {
  private let uses: [ListUse]
  private let slots: UnsafeMutablePointer<UInt64>
  private let slotCount: Int
  /// The first effect is that of no name.
  private var effects = [ListEffect()]
  private var numbers: [ListEffect: UInt64] = [ListEffect(): 0]
  /// The number of two effects together.
  private var unions: [UInt64: UInt64] = [:]

  /// The highest number of an effect.
  private static let lastEffect = 65_535

  init(_ lists: [ListNames], _ uses: [ListUse]) {
    self.uses = uses
    let count = lists.reduce(0) { $0 + $1.count }
    // 7 of 10 slots are taken.
    slotCount = count + count * 3 / 7 + 16
    slots = .allocate(capacity: slotCount)
    slots.initialize(repeating: 0, count: slotCount)
  }

  /// Adds the names of a list.
  ///
  /// - Parameter wasKept: whether the previous table had this name in this list.
  /// - Returns: the number of its different names, and of those that the previous table had.
  mutating func add(_ list: ListNames, _ index: Int, wasKept: (UInt64) -> Bool) -> (names: Int, kept: Int) {
    var counts = (names: 0, kept: 0)
    for form in ListForm.allCases {
      let forms = [(list.names, uses: uses), (list.publicSuffixes, uses: uses.map { $0.blocks ? nil : $0 })]
      for (hashes, uses) in forms where !hashes[Int(form.rawValue)].isEmpty {
        guard let added = number(of: effect(of: index, form, uses)), added != 0 else { continue }
        for hash in hashes[Int(form.rawValue)] where add(hash, added) {
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

  private func effect(of list: Int, _ form: ListForm, _ uses: [ListUse?]) -> ListEffect {
    let mask = uses.enumerated().reduce(UInt64(0)) { $0 | ($1.element?.list == list ? 1 << UInt64($1.offset) : 0) }
    switch form {
    case .subtree: return ListEffect(subtree: mask)
    case .alone: return ListEffect(alone: mask)
    case .exception: return ListEffect(exceptions: mask)
    }
  }

  /// Adds an effect to a name's.
  ///
  /// - Returns: whether that changes it: a name may stand in a list twice.
  private mutating func add(_ hash: UInt64, _ added: UInt64) -> Bool {
    var place = firstSlot(of: hash, among: slotCount)
    let tag = hash &<< 16
    while slots[place] != 0 {
      let number = slots[place] ^ tag
      if number <= ListTableBuilder.lastEffect {
        let both = union(number, added)
        slots[place] = tag | both
        return both != number
      }
      place += 1
      if place == slotCount { place = 0 }
    }
    slots[place] = tag | added
    return true
  }

  private mutating func union(_ left: UInt64, _ right: UInt64) -> UInt64 {
    if left == right { return left }
    if let known = unions[left << 16 | right] { return known }
    let both = number(of: effects[Int(left)].union(effects[Int(right)])) ?? left
    unions[left << 16 | right] = both
    return both
  }

  /// The number of an effect; nil if there are too many, which only lists that share names in 65,535 ways reach.
  private mutating func number(of effect: ListEffect) -> UInt64? {
    if let number = numbers[effect] { return number }
    guard effects.count <= ListTableBuilder.lastEffect else { return nil }
    let number = UInt64(effects.count)
    effects.append(effect)
    numbers[effect] = number
    return number
  }
}
