// CompressionTable.swift -- the names in a message under construction, for compression pointers.

/// A message's names as a tree of labels (RFC 1035 section 4.1.4): each label and its parents are identified by their
/// offset. Writing a name takes one look-up per label, from the last one on, regardless of the number of names.
///
/// Labels are compared without regard to ASCII case, as in other resolvers. Otherwise the length of a response would
/// depend on the client's spelling of QNAME.
struct CompressionTable {
  /// A label in the tree; the offset of 0 is an empty slot.
  private struct Node {
    var offset: UInt16 = 0
    /// The offset of the rest of the name; 0 is the root.
    var parent: UInt16 = 0
    var hash: UInt32 = 0
  }

  private static let firstUnreachable = 0x4000
  /// The slots examined for one label. More than that collide only if an attacker found labels with equal hashes.
  private static let mostProbes = 32
  private static let seed = UInt64.random(in: .min ... .max)

  private let question: DomainName
  /// The offset of the body in the message.
  private let base: Int
  private var nodes: [Node] = []
  private var count = 0
  /// The last owner name: most records have the same owner as the previous one.
  private var last: (name: DomainName, pointer: UInt16)?
  /// The number of slots examined, for tests.
  private(set) var steps = 0

  /// Creates a table with QNAME, which follows the header.
  init(_ question: DomainName) {
    self.question = question
    base = QueryReader.headerLength + question.octets.count + 4
    if !question.isRoot { last = (question, 0xC000 | UInt16(QueryReader.headerLength)) }
  }

  /// Appends an owner name. Records of an RRset follow each other, so the previous owner name is compared first.
  mutating func write(owner name: DomainName, to body: inout [UInt8]) {
    if let last, last.name.octets == name.octets || last.name == name { return append(last.pointer, to: &body) }
    let start = base + body.count
    write(name.octets[...], to: &body)
    guard !name.isRoot else { return }
    let first = body[start - base]
    if first >= 0xC0 {
      last = (name, UInt16(first) << 8 | UInt16(body[start - base + 1]))
    } else if start < CompressionTable.firstUnreachable {
      last = (name, 0xC000 | UInt16(start))
    }
  }

  /// Appends a name, in valid wire form, to the body.
  mutating func write(_ name: ArraySlice<UInt8>, to body: inout [UInt8]) {
    if nodes.isEmpty { learnQuestion() }
    withUnsafeTemporaryAllocation(of: Int.self, capacity: NameLimit.name) { starts in
      var labels = 0
      var position = name.startIndex
      while name[position] != 0 {
        starts[labels] = position
        labels += 1
        position += Int(name[position]) + 1
      }
      // From the last label on: the known labels, of which the longest suffix within reach of a pointer is used.
      var parent: UInt16 = 0
      var known = labels
      var (reached, pointer) = (labels, UInt16(0))
      while known > 0, let offset = find(label(name, starts[known - 1]), parent, body) {
        known -= 1
        parent = offset
        if offset < CompressionTable.firstUnreachable { (reached, pointer) = (known, 0xC000 | offset) }
      }
      let start = base + body.count - name.startIndex
      body.append(contentsOf: name[..<(reached < labels ? starts[reached] : position)])
      if reached < labels { append(pointer, to: &body) } else { body.append(0) }
      guard start + name.startIndex < CompressionTable.firstUnreachable else { return }
      while known > 0 {
        known -= 1
        guard let offset = UInt16(exactly: start + starts[known]) else { return }
        insert(label(name, starts[known]), parent, at: offset)
        parent = offset
      }
    }
  }

  private func label(_ name: ArraySlice<UInt8>, _ start: Int) -> ArraySlice<UInt8> {
    name[start...(start + Int(name[start]))]
  }

  private mutating func learnQuestion() {
    nodes = [Node](repeating: Node(), count: 64)
    var starts: [Int] = []
    var position = 0
    while question.octets[position] != 0 {
      starts.append(position)
      position += Int(question.octets[position]) + 1
    }
    var parent: UInt16 = 0
    for start in starts.reversed() {
      let offset = UInt16(QueryReader.headerLength + start)
      insert(label(question.octets[...], start), parent, at: offset)
      parent = offset
    }
  }

  private mutating func find(_ label: ArraySlice<UInt8>, _ parent: UInt16, _ body: [UInt8]) -> UInt16? {
    let hash = CompressionTable.hash(label, parent)
    var slot = Int(hash) & (nodes.count - 1)
    for _ in 0..<CompressionTable.mostProbes {
      steps += 1
      let node = nodes[slot]
      guard node.offset != 0 else { return nil }
      if node.hash == hash, node.parent == parent, isLabel(label, at: Int(node.offset), body) { return node.offset }
      slot = (slot + 1) & (nodes.count - 1)
    }
    return nil
  }

  private func isLabel(_ label: ArraySlice<UInt8>, at offset: Int, _ body: [UInt8]) -> Bool {
    let (octets, start) = offset < base ? (question.octets, offset - QueryReader.headerLength) : (body, offset - base)
    for index in 0..<label.count
    where asciiLowercase(octets[start + index]) != asciiLowercase(label[label.startIndex + index]) {
      return false
    }
    return true
  }

  private mutating func insert(_ label: ArraySlice<UInt8>, _ parent: UInt16, at offset: UInt16) {
    if count * 2 >= nodes.count { grow() }
    place(Node(offset: offset, parent: parent, hash: CompressionTable.hash(label, parent)))
  }

  private mutating func place(_ node: Node) {
    var slot = Int(node.hash) & (nodes.count - 1)
    for _ in 0..<CompressionTable.mostProbes {
      steps += 1
      if nodes[slot].offset == 0 {
        nodes[slot] = node
        count += 1
        return
      }
      slot = (slot + 1) & (nodes.count - 1)
    }
  }

  private mutating func grow() {
    let old = nodes
    nodes = [Node](repeating: Node(), count: old.count * 2)
    count = 0
    for node in old where node.offset != 0 { place(node) }
  }

  private static func hash(_ label: ArraySlice<UInt8>, _ parent: UInt16) -> UInt32 {
    var hash = seed ^ UInt64(parent)
    for octet in label { hash = (hash ^ UInt64(asciiLowercase(octet))) &* 0x9E37_79B9_7F4A_7C15 }
    return UInt32(truncatingIfNeeded: hash >> 32)
  }

  private func append(_ pointer: UInt16, to body: inout [UInt8]) {
    body.append(UInt8(pointer >> 8))
    body.append(UInt8(truncatingIfNeeded: pointer))
  }
}

extension RecordType {
  /// The octets of RDATA before the compressible names and the number of these names, for the types of RFC 1035. Nil for
  /// other types, whose names must not be compressed (RFC 3597 section 4).
  var compressibleNames: (skipped: Int, names: Int)? {
    switch rawValue {
    case 2, 3, 4, 5, 7, 8, 9, 12: (0, 1)  // NS MD MF CNAME MB MG MR PTR
    case 6, 14: (0, 2)  // SOA MINFO
    case 15: (2, 1)  // MX
    default: nil
    }
  }
}
