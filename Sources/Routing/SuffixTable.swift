// SuffixTable.swift -- names as a tree of labels, with all edges in one open-addressing hash table.
//
// A node is a number; the root is 0. The edge from a node to the child with a given label is found by hashing both. A
// look-up costs one probe for each known label and ends at the first unknown one.

import DNSWire

/// An edge of the tree; a free slot if `child` is 0.
struct SuffixEdge {
  var parent: UInt32 = 0
  var child: UInt32 = 0
  /// The offset of the label, with its length octet, in the table's labels.
  var label: UInt32 = 0
  var hash: UInt32 = 0
}

/// The finished table, which does not own its storage.
struct SuffixTable {
  let edges: UnsafeMutablePointer<SuffixEdge>
  /// The number of slots, a power of two, minus one.
  let mask: Int
  let labels: UnsafeMutablePointer<UInt8>

  /// The slot of the edge from `parent` with the label that starts with its length octet at `label`, or the free slot for it.
  ///
  /// At least half of the slots are free, which bounds the search for any query.
  @_noAllocation @inline(__always)
  func place(of parent: UInt32, _ label: UnsafePointer<UInt8>, hash: UInt32) -> Int {
    var place = Int(hash) & mask
    while edges[place].child != 0 {
      let edge = edges[place]
      if edge.hash == hash, edge.parent == parent, isEqual(labels + Int(edge.label), label) { break }
      place = (place + 1) & mask
    }
    return place
  }

  /// The child of `parent` with that label, or 0.
  @_noAllocation @inline(__always)
  func child(of parent: UInt32, _ label: UnsafePointer<UInt8>) -> UInt32 {
    edges[place(of: parent, label, hash: SuffixTable.hash(parent, label))].child
  }

  @_noAllocation @inline(__always)
  private func isEqual(_ left: UnsafePointer<UInt8>, _ right: UnsafePointer<UInt8>) -> Bool {
    let count = Int(left[0]) + 1
    var index = 0
    while index < count {
      if left[index] != right[index] { return false }
      index += 1
    }
    return true
  }

  /// A hash of a node and a label with its length octet; eight octets at a time.
  ///
  /// It needs no seed. Names enter the table from the configuration, the hosts file and the network's search list; look-ups
  /// add none. The worst query hits the longest run of occupied slots, about a hundred in half-empty tables of any size
  /// (`SuffixTableTests`). The author of a blocklist could construct longer runs, but can block every name anyway.
  @_noAllocation @inline(__always)
  static func hash(_ parent: UInt32, _ label: UnsafePointer<UInt8>) -> UInt32 {
    let count = Int(label[0]) + 1
    var hash = (UInt64(parent) &+ 1) &* 0x9E37_79B9_7F4A_7C15
    var index = 0
    while index &+ 8 <= count {
      hash = mix(hash ^ UnsafeRawPointer(label + index).loadUnaligned(as: UInt64.self))
      index &+= 8
    }
    var rest: UInt64 = 0
    while index < count {
      rest = rest &<< 8 | UInt64(label[index])
      index &+= 1
    }
    return UInt32(truncatingIfNeeded: mix(hash ^ rest) &>> 16)
  }

  @_noAllocation @inline(__always)
  private static func mix(_ value: UInt64) -> UInt64 {
    let product = value &* 0xD6E8_FEB8_6659_FD93
    return product ^ (product &>> 32)
  }
}

/// Collects names into a table. Owns the storage.
struct SuffixTableBuilder: ~Copyable {
  /// The parent of each node; parents come before their children.
  private(set) var parents: [UInt32] = [0]
  /// The offset of each node's label in the table's labels.
  private var labelPlaces: [UInt32] = [0]
  private(set) var table = SuffixTableBuilder.makeTable(places: 64)
  private var labelCount = 0
  private var labelCapacity = 256

  /// The number of nodes, including the root.
  var count: Int { parents.count }

  private static func makeTable(places: Int, labels: UnsafeMutablePointer<UInt8>? = nil) -> SuffixTable {
    let edges = UnsafeMutablePointer<SuffixEdge>.allocate(capacity: places)
    edges.initialize(repeating: SuffixEdge(), count: places)
    return SuffixTable(edges: edges, mask: places - 1, labels: labels ?? .allocate(capacity: 256))
  }

  deinit {
    table.edges.deallocate()
    table.labels.deallocate()
  }

  /// The node of a lower-case name; creates it and its ancestors if necessary.
  mutating func node(of name: DomainName) -> UInt32 {
    name.octets.withUnsafeBufferPointer { octets in
      var starts: [Int] = []
      var position = 0
      while octets[position] != 0 {
        starts.append(position)
        position += Int(octets[position]) + 1
      }
      var node: UInt32 = 0
      for start in starts.reversed() { node = child(of: node, octets.baseAddress! + start) }
      return node
    }
  }

  /// Whether the label of a node is a number. The node must not be the root.
  func isNumber(_ node: UInt32) -> Bool { Routing.isNumber(table.labels + Int(labelPlaces[Int(node)])) }

  /// A copy of the table; the caller frees `edges` and `labels`.
  func copyTable() -> SuffixTable {
    let edges = UnsafeMutablePointer<SuffixEdge>.allocate(capacity: table.mask + 1)
    edges.initialize(from: table.edges, count: table.mask + 1)
    let labels = UnsafeMutablePointer<UInt8>.allocate(capacity: labelCount + 1)
    labels.initialize(from: table.labels, count: labelCount)
    return SuffixTable(edges: edges, mask: table.mask, labels: labels)
  }

  private mutating func child(of parent: UInt32, _ label: UnsafePointer<UInt8>) -> UInt32 {
    let hash = SuffixTable.hash(parent, label)
    let place = table.place(of: parent, label, hash: hash)
    guard table.edges[place].child == 0 else { return table.edges[place].child }
    let child = UInt32(parents.count)
    let labelPlace = append(label)
    table.edges[place] = SuffixEdge(parent: parent, child: child, label: labelPlace, hash: hash)
    parents.append(parent)
    labelPlaces.append(labelPlace)
    if parents.count * 2 > table.mask { grow() }
    return child
  }

  private mutating func append(_ label: UnsafePointer<UInt8>) -> UInt32 {
    let count = Int(label[0]) + 1
    if labelCount + count > labelCapacity {
      let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: labelCapacity * 2)
      larger.update(from: table.labels, count: labelCount)
      table.labels.deallocate()
      table = SuffixTable(edges: table.edges, mask: table.mask, labels: larger)
      labelCapacity *= 2
    }
    (table.labels + labelCount).update(from: label, count: count)
    labelCount += count
    return UInt32(labelCount - count)
  }

  private mutating func grow() {
    let old = table
    table = SuffixTableBuilder.makeTable(places: (old.mask + 1) * 2, labels: old.labels)
    for place in 0...old.mask where old.edges[place].child != 0 {
      let edge = old.edges[place]
      table.edges[table.place(of: edge.parent, old.labels + Int(edge.label), hash: edge.hash)] = edge
    }
    old.edges.deallocate()
  }
}
