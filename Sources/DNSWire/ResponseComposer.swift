// ResponseComposer.swift -- records become the body of a response, once; the cache then serves it many times.

/// The answer and authority sections of a response in wire form, with what the hot path needs to age and rotate them.
///
/// The body stands right behind the question; its compression pointers count from the start of the message, so it fits any
/// question whose name has the same length.
public struct ComposedResponse: Sendable {
  /// RCODE, 0…15.
  public var responseCode: ResponseCode
  /// Whether a validating upstream vouches for it.
  public var isAuthenticated = false
  /// Whether it is an answer of our own local zones.
  public var isAuthoritative = false
  /// An Extended DNS Error that goes with it.
  public var extendedError: ExtendedError?
  /// Whether the upstream said that the answer holds for every client subnet (scope 0).
  public var isForEverySubnet = true
  /// ANCOUNT.
  public private(set) var answers: UInt16 = 0
  /// NSCOUNT.
  public private(set) var authorities: UInt16 = 0
  /// The sections.
  public private(set) var body: [UInt8] = []
  /// Where in `body` each TTL stands.
  public private(set) var ttlOffsets: [UInt16] = []
  /// The smallest TTL of the body in seconds; `UInt32.max` where it has no record.
  public private(set) var lowestTTL = UInt32.max
  /// The last run of A or AAAA records of one owner: what rotates from hit to hit.
  public private(set) var rotation = Rotation()

  /// Records of equal length, one behind the other.
  public struct Rotation: Sendable, Equatable {
    /// Where in the body the first one starts.
    public var start: UInt16 = 0
    /// Octets of each.
    public var size: UInt8 = 0
    /// How many; nothing rotates below two.
    public var count: UInt16 = 0
  }

  /// An answer without records.
  public init(_ responseCode: ResponseCode, extendedError: ExtendedError? = nil) {
    self.responseCode = responseCode
    self.extendedError = extendedError
  }

  /// Composes records in the order given.
  ///
  /// - Parameter name: QNAME; owners are compressed against it and against each other (RFC 1035 section 4.1.4).
  /// - Returns: nil where the message would not fit into 65,535 octets.
  public init?(
    _ responseCode: ResponseCode, to name: DomainName, answers: [ResourceRecord], authorities: [ResourceRecord] = []
  ) {
    self.init(responseCode)
    var names = NameTable(name)
    let base = QueryReader.headerLength + name.octets.count + 4
    body.reserveCapacity(answers.count * 20 + authorities.count * 80)
    for record in answers { append(record, base: base, &names) }
    for record in authorities { append(record, base: base, &names) }
    guard base + body.count + ResponseWriter.overhead <= Int(UInt16.max) else { return nil }
    self.answers = UInt16(answers.count)
    self.authorities = UInt16(authorities.count)
    rotation = ComposedResponse.rotation(of: answers, body: body, ttlOffsets: ttlOffsets)
  }

  private mutating func append(_ record: ResourceRecord, base: Int, _ names: inout NameTable) {
    guard body.count <= Int(UInt16.max) else { return }
    names.write(record.owner, to: &body, base: base)
    append(word: record.type.rawValue)
    append(word: 1)
    ttlOffsets.append(UInt16(truncatingIfNeeded: body.count))
    append(word: UInt16(truncatingIfNeeded: record.ttl >> 16))
    append(word: UInt16(truncatingIfNeeded: record.ttl))
    append(word: UInt16(truncatingIfNeeded: record.rdata.count))
    if record.type == .cname { names.note(record.rdata, at: base + body.count) }
    body.append(contentsOf: record.rdata)
    lowestTTL = min(lowestTTL, record.ttl)
  }

  private mutating func append(word: UInt16) {
    body.append(UInt8(truncatingIfNeeded: word >> 8))
    body.append(UInt8(truncatingIfNeeded: word))
  }

  /// The last run of address records. They rotate only when each owner is nothing but a pointer, so that all have the same
  /// length and none is pointed at.
  private static func rotation(of answers: [ResourceRecord], body: [UInt8], ttlOffsets: [UInt16]) -> Rotation {
    guard let last = answers.last, last.type == .a || last.type == .aaaa, last.rdata.count <= 16 else {
      return Rotation()
    }
    let run = answers.reversed().prefix {
      $0.type == last.type && $0.rdata.count == last.rdata.count && $0.owner == last.owner
    }.count
    let first = answers.count - run
    let start = first == 0 ? 0 : Int(ttlOffsets[first - 1]) + 6 + answers[first - 1].rdata.count
    guard run > 1, Int(ttlOffsets[first]) == start + 6, body[start] & 0xC0 == 0xC0 else { return Rotation() }
    return Rotation(start: UInt16(start), size: UInt8(2 + 10 + last.rdata.count), count: UInt16(run))
  }
}

/// The names that a message holds so far, for compression pointers.
private struct NameTable {
  private var known: [(octets: [UInt8], offset: Int)] = []
  private var last: (name: DomainName, pointer: UInt16)?

  /// A bound on the work for a hostile answer: names beyond it are written in full.
  private static let limit = 24

  init(_ question: DomainName) {
    known.append((question.octets, QueryReader.headerLength))
    if !question.isRoot { last = (question, 0xC000 | UInt16(QueryReader.headerLength)) }
  }

  mutating func note(_ octets: [UInt8], at offset: Int) {
    if known.count < NameTable.limit, offset < 0x4000 { known.append((octets, offset)) }
  }

  mutating func write(_ name: DomainName, to body: inout [UInt8], base: Int) {
    if let last, last.name.octets == name.octets || last.name == name { return append(last.pointer, to: &body) }
    let start = base + body.count
    var position = 0
    while name.octets[position] != 0 {
      if let pointer = find(name.octets[position...]) {
        body.append(contentsOf: name.octets[..<position])
        append(pointer, to: &body)
        remember(name, start: start, whole: position == 0 ? pointer : nil)
        return
      }
      position += Int(name.octets[position]) + 1
    }
    body.append(contentsOf: name.octets)
    remember(name, start: start, whole: nil)
  }

  private mutating func remember(_ name: DomainName, start: Int, whole pointer: UInt16?) {
    guard !name.isRoot else { return }
    if let pointer {
      last = (name, pointer)
    } else if start < 0x4000 {
      last = (name, 0xC000 | UInt16(start))
      note(name.octets, at: start)
    }
  }

  /// Only names that stand uncompressed up to their own end or pointer are searched, label by label.
  private func find(_ suffix: ArraySlice<UInt8>) -> UInt16? {
    for entry in known {
      let skip = entry.octets.count - suffix.count
      guard skip >= 0, isLabelStart(entry.octets, skip), entry.offset + skip < 0x4000 else { continue }
      if zip(entry.octets[skip...], suffix).allSatisfy({ asciiLowercase($0) == asciiLowercase($1) }) {
        return 0xC000 | UInt16(entry.offset + skip)
      }
    }
    return nil
  }

  private func isLabelStart(_ octets: [UInt8], _ target: Int) -> Bool {
    var position = 0
    while position < target { position += Int(octets[position]) + 1 }
    return position == target
  }

  private func append(_ pointer: UInt16, to body: inout [UInt8]) {
    body.append(UInt8(pointer >> 8))
    body.append(UInt8(truncatingIfNeeded: pointer))
  }
}
