// WireReader.swift -- a cursor over a message: integers, octets and names, each checked before it is read.

/// Reads a message from its first octet to its last. Every read advances or throws; none passes the limit.
struct WireReader: ~Escapable {
  /// The whole message: compression pointers may lead to any earlier octet.
  let octets: Span<UInt8>
  /// The offset of the next octet.
  private(set) var position = 0
  /// The end of the readable part: of the message, or of the current RDATA.
  private(set) var limit: Int
  /// Whether names may be compressed: true for a message, false for RDATA alone.
  let allowsPointers: Bool

  /// The limit of labels and pointers in all names of a message. Without it, 64 KiB of pointers to one name of 127 labels
  /// would cost millions of steps; 4,000 records at the end of an alias chain cost about 100,000.
  static let maximumSteps = 1 << 18
  /// Labels and pointers so far.
  private(set) var steps = 0

  /// The most pointers in one name. A name has at most 127 labels, and each useful pointer precedes or follows one.
  static let maximumPointers = 127

  @_lifetime(copy octets)
  init(_ octets: Span<UInt8>, allowsPointers: Bool = true) {
    self.octets = octets
    self.limit = octets.count
    self.allowsPointers = allowsPointers
  }

  /// The octets left before the limit.
  var remaining: Int { limit - position }

  /// Limits reads to the next `count` octets until ``leavePart()``.
  @_lifetime(self: copy self)
  mutating func beginPart(_ count: Int) throws(WireError) {
    guard count <= remaining else { throw .truncated }
    limit = position + count
  }

  /// Lifts the limit again, and steps over what is left of the part.
  @_lifetime(self: copy self)
  mutating func leavePart() {
    position = limit
    limit = octets.count
  }

  /// Steps over `count` octets.
  ///
  /// - Returns: the offset of the first one.
  @inline(__always)
  @_lifetime(self: copy self)
  mutating func skip(_ count: Int) throws(WireError) -> Int {
    guard count <= remaining else { throw .truncated }
    defer { position += count }
    return position
  }

  @_lifetime(self: copy self)
  mutating func octet() throws(WireError) -> UInt8 { octets[try skip(1)] }

  @_lifetime(self: copy self)
  mutating func short() throws(WireError) -> UInt16 {
    let start = try skip(2)
    return UInt16(octets[start]) << 8 | UInt16(octets[start + 1])
  }

  @_lifetime(self: copy self)
  mutating func long() throws(WireError) -> UInt32 {
    let high = try short()
    return UInt32(high) << 16 | UInt32(try short())
  }

  /// Steps over `count` octets and appends them to `output`.
  @_lifetime(self: copy self)
  mutating func copy(_ count: Int, to output: inout [UInt8]) throws(WireError) {
    let start = try skip(count)
    append(start..<(start + count), to: &output)
  }

  /// Steps over `count` octets and returns them as an array.
  @_lifetime(self: copy self)
  mutating func array(_ count: Int) throws(WireError) -> [UInt8] {
    let start = try skip(count)
    return octets.extracting(start..<(start + count)).withUnsafeBufferPointer { Array($0) }
  }

  /// Steps over a name.
  @_lifetime(self: copy self)
  mutating func name() throws(WireError) -> DomainName {
    let start = position
    let length = try skipName()
    guard position - start != length else {
      return DomainName(unchecked: octets.extracting(start..<position).withUnsafeBufferPointer { Array($0) })
    }
    var output: [UInt8] = []
    output.reserveCapacity(length)
    appendCompressedName(at: start, to: &output)
    return DomainName(unchecked: output)
  }

  /// Steps over a name and appends it, uncompressed, to `output`.
  @_lifetime(self: copy self)
  mutating func copyName(to output: inout [UInt8]) throws(WireError) {
    let start = position
    let length = try skipName()
    if position - start == length {
      append(start..<position, to: &output)
    } else {
      appendCompressedName(at: start, to: &output)
    }
  }

  /// Checks a name and steps over it.
  ///
  /// - Returns: its uncompressed length, which equals the number of octets stepped over only if there is no pointer.
  @_lifetime(self: copy self)
  private mutating func skipName() throws(WireError) -> Int {
    var length = 0
    var pointers = 0
    var label = position
    // The target must lie entirely before the part with the pointer, so that no octet is visited twice.
    var partStart = position
    var partLimit = limit
    while true {
      guard label < partLimit else { throw .truncated }
      steps += 1
      guard steps <= WireReader.maximumSteps else { throw .tooMuchWork }
      let count = Int(octets[label])
      if count <= NameLimit.label {
        length += count + 1
        label += count + 1
        guard length <= NameLimit.name else { throw .nameTooLong }
        guard count != 0 else { break }
      } else if count >= 0xC0 {
        guard label + 1 < partLimit else { throw .truncated }
        let target = pointerTarget(at: label)
        pointers += 1
        guard allowsPointers, target < partStart, pointers <= WireReader.maximumPointers else { throw .pointer }
        if pointers == 1 { position = label + 2 }
        partLimit = partStart
        partStart = target
        label = target
      } else {
        throw .labelType
      }
    }
    if pointers == 0 { position = label }
    return length
  }

  /// Appends a name that ``skipName()`` has checked.
  private func appendCompressedName(at start: Int, to output: inout [UInt8]) {
    var label = start
    while true {
      let count = Int(octets[label])
      if count > NameLimit.label {
        label = pointerTarget(at: label)
      } else {
        append(label..<(label + count + 1), to: &output)
        guard count != 0 else { return }
        label += count + 1
      }
    }
  }

  private func pointerTarget(at label: Int) -> Int { Int(octets[label] & 0x3F) << 8 | Int(octets[label + 1]) }

  private func append(_ range: Range<Int>, to output: inout [UInt8]) {
    octets.extracting(range).withUnsafeBufferPointer { output.append(contentsOf: $0) }
  }
}

extension WireReader {
  /// The next two octets as a number, without stepping over them; nil if fewer are left.
  var upcomingShort: UInt16? { remaining >= 2 ? UInt16(octets[position]) << 8 | UInt16(octets[position + 1]) : nil }
}
