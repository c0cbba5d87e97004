// TableIndex.swift -- the names of a table and their addresses, in four pieces of memory.
//
// A table of 4 MiB has 300,000 addresses. With memory of their own, the last user of the table pays for the release of all of
// them, and the next large piece that the process needs for their consolidation: 20 ms each, on whatever thread that is.

import DNSWire

/// Addresses by name. Grows only.
struct TableIndex: Sendable {
  private struct Entry {
    var name: Int32
    var nameLength: UInt8
    var addressCount: UInt8
    var addresses: Int32
  }

  /// Wire forms in lower case, one after another.
  private var names: [UInt8] = []
  /// The length of each address, and its octets.
  private var addresses: [UInt8] = []
  private var entries: [Entry] = []
  /// Open addressing: the index of an entry, or -1. At most half of them are used.
  private var slots = [Int32](repeating: -1, count: 16)

  /// The number of names.
  var count: Int { entries.count }

  /// The addresses of a name, in their order; nil if it is not there.
  subscript(name: DomainName) -> [IPAddress]? {
    let index = name.lowercased.octets.withUnsafeBytes { slots[slot(of: $0)] }
    guard index >= 0 else { return nil }
    let entry = entries[Int(index)]
    var position = Int(entry.addresses)
    return (0..<entry.addressCount).compactMap { _ in
      let begin = position + 1
      position = begin + Int(addresses[position])
      return IPAddress(octets: Array(addresses[begin..<position]))
    }
  }

  /// Adds a name, unless it is there already. It has at most 255 addresses.
  ///
  /// - Complexity: O(1) in the names, amortized.
  mutating func insert(_ name: DomainName, _ list: [IPAddress]) {
    let octets = name.lowercased.octets
    let free = octets.withUnsafeBytes { slot(of: $0) }
    guard slots[free] < 0 else { return }
    slots[free] = Int32(entries.count)
    entries.append(
      Entry(
        name: Int32(names.count), nameLength: UInt8(octets.count), addressCount: UInt8(list.count),
        addresses: Int32(addresses.count)))
    names += octets
    for address in list {
      addresses.append(UInt8(address.octets.count))
      addresses += address.octets
    }
    if 2 * entries.count > slots.count { grow() }
  }

  private mutating func grow() {
    slots = [Int32](repeating: -1, count: 2 * slots.count)
    for (index, entry) in entries.enumerated() {
      let free = names.withUnsafeBytes { slot(of: TableIndex.name(of: entry, in: $0)) }
      slots[free] = Int32(index)
    }
  }

  private static func name(of entry: Entry, in names: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: names[Int(entry.name)..<(Int(entry.name) + Int(entry.nameLength))])
  }

  /// The slot that has a name, or would have it.
  private func slot(of name: UnsafeRawBufferPointer) -> Int {
    // Its seed is a secret of the process.
    var hasher = Hasher()
    hasher.combine(bytes: name)
    var slot = hasher.finalize() & (slots.count - 1)
    names.withUnsafeBytes { names in
      while slots[slot] >= 0, !name.elementsEqual(TableIndex.name(of: entries[Int(slots[slot])], in: names)) {
        slot = (slot + 1) & (slots.count - 1)
      }
    }
    return slot
  }
}
