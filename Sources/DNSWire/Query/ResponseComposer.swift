// ResponseComposer.swift -- composes records into the body of a response, which the cache serves many times.

/// The answer and authority sections of a response in wire form, with offsets for ageing and rotating them.
///
/// The body directly follows the question. Its compression pointers are relative to the start of the message, so it fits
/// any question with a QNAME of the same length.
public struct ComposedResponse: Sendable {
  /// RCODE, 0…15.
  public var responseCode: ResponseCode
  /// Whether a validating upstream set AD.
  public var isAuthenticated = false
  /// Whether the answer comes from a local zone of the daemon.
  public var isAuthoritative = false
  /// The Extended DNS Error to send with it.
  public var extendedError: ExtendedError?
  /// Whether the upstream declared the answer valid for all client subnets (scope 0).
  public var isForEverySubnet = true
  /// ANCOUNT.
  public private(set) var answers: UInt16 = 0
  /// NSCOUNT.
  public private(set) var authorities: UInt16 = 0
  /// The sections.
  public private(set) var body: [UInt8] = []
  /// The offset of each TTL in `body`.
  public private(set) var ttlOffsets: [UInt16] = []
  /// The smallest TTL of the body in seconds; `UInt32.max` if it has no record.
  public private(set) var lowestTTL = UInt32.max
  /// The last run of A or AAAA records with one owner, which rotates from hit to hit.
  public private(set) var rotation = Rotation()

  /// Consecutive records of equal length.
  public struct Rotation: Sendable, Equatable {
    /// The offset of the first record in the body.
    public var start: UInt16 = 0
    /// The octets of each record.
    public var size: UInt8 = 0
    /// The number of records; below two, nothing rotates.
    public var count: UInt16 = 0
  }

  /// Creates a response without records.
  public init(_ responseCode: ResponseCode, extendedError: ExtendedError? = nil) {
    self.responseCode = responseCode
    self.extendedError = extendedError
  }

  /// Composes records in the order given.
  ///
  /// - Parameter name: QNAME. Owner names, and names in RDATA of the types of RFC 1035 (RFC 3597 section 4), are compressed
  ///   against it and against each other (RFC 1035 section 4.1.4).
  /// - Returns: nil if the message would exceed 65,535 octets.
  public init?(
    _ responseCode: ResponseCode, to name: DomainName, answers: [ResourceRecord], authorities: [ResourceRecord] = []
  ) {
    var steps = 0
    self.init(responseCode, to: name, answers: answers, authorities: authorities, counting: &steps)
  }

  /// As above; adds the number of examined slots to `steps`, for tests.
  init?(
    _ responseCode: ResponseCode, to name: DomainName, answers: [ResourceRecord], authorities: [ResourceRecord],
    counting steps: inout Int
  ) {
    self.init(responseCode)
    var names = CompressionTable(name)
    let base = QueryReader.headerLength + name.octets.count + 4
    body.reserveCapacity(answers.count * 20 + authorities.count * 80)
    for record in answers { append(record, &names) }
    for record in authorities { append(record, &names) }
    steps += names.steps
    guard base + body.count + ResponseWriter.overhead <= Int(UInt16.max) else { return nil }
    self.answers = UInt16(answers.count)
    self.authorities = UInt16(authorities.count)
    rotation = ComposedResponse.rotation(of: answers, body: body, ttlOffsets: ttlOffsets)
  }

  /// The RDATA of the records that rotate, in their order.
  public var rotatingAddresses: [[UInt8]] {
    let (start, size) = (Int(rotation.start), Int(rotation.size))
    return (0..<Int(rotation.count)).map { Array(body[start + $0 * size + 12..<start + ($0 + 1) * size]) }
  }

  /// Puts the records that rotate in another order, of which only the first ones rotate from now on.
  ///
  /// - Parameters:
  ///   - order: a permutation of the indices of `rotatingAddresses`.
  ///   - count: how many of them rotate.
  public mutating func arrange(_ order: [Int], rotating count: Int) {
    let (start, size) = (Int(rotation.start), Int(rotation.size))
    guard order.count == Int(rotation.count), size > 0 else { return }
    let records = order.map { body[start + $0 * size..<start + ($0 + 1) * size] }
    body.replaceSubrange(start..<start + order.count * size, with: records.joined())
    rotation.count = UInt16(clamping: count)
  }

  /// Lets at most `count` of the records rotate.
  public mutating func limitRotation(to count: Int) {
    rotation.count = min(rotation.count, UInt16(clamping: max(0, count)))
  }

  private mutating func append(_ record: ResourceRecord, _ names: inout CompressionTable) {
    guard body.count <= Int(UInt16.max) else { return }
    names.write(owner: record.owner, to: &body)
    append(word: record.type.rawValue)
    append(word: RecordClass.internet.rawValue)
    ttlOffsets.append(UInt16(truncatingIfNeeded: body.count))
    append(word: UInt16(truncatingIfNeeded: record.ttl >> 16))
    append(word: UInt16(truncatingIfNeeded: record.ttl))
    let start = body.count + 2
    append(word: UInt16(truncatingIfNeeded: record.rdata.count))
    append(record.rdata, of: record.type, &names)
    let length = UInt16(truncatingIfNeeded: body.count - start)
    body[start - 2] = UInt8(length >> 8)
    body[start - 1] = UInt8(truncatingIfNeeded: length)
    lowestTTL = min(lowestTTL, record.ttl)
  }

  private mutating func append(_ rdata: [UInt8], of type: RecordType, _ names: inout CompressionTable) {
    guard let (skipped, count) = type.compressibleNames, skipped <= rdata.count else {
      return body.append(contentsOf: rdata)
    }
    body.append(contentsOf: rdata[..<skipped])
    var rest = rdata[skipped...]
    for _ in 0..<count {
      guard let end = ComposedResponse.endOfName(rest) else { break }
      names.write(rest[..<end], to: &body)
      rest = rest[end...]
    }
    body.append(contentsOf: rest)
  }

  /// The end of the name at the beginning of the octets; nil if the name is malformed.
  private static func endOfName(_ octets: ArraySlice<UInt8>) -> Int? {
    var position = octets.startIndex
    while position < octets.endIndex, octets[position] != 0 {
      guard octets[position] <= NameLimit.label else { return nil }
      position += Int(octets[position]) + 1
    }
    let isName = position < octets.endIndex && position - octets.startIndex < NameLimit.name
    return isName ? position + 1 : nil
  }

  private mutating func append(word: UInt16) {
    body.append(UInt8(truncatingIfNeeded: word >> 8))
    body.append(UInt8(truncatingIfNeeded: word))
  }

  /// The last run of address records. They rotate only if each owner is just a pointer: then all have the same length,
  /// and no pointer leads to one of them.
  private static func rotation(of answers: [ResourceRecord], body: [UInt8], ttlOffsets: [UInt16]) -> Rotation {
    guard let last = answers.last, last.type == .a || last.type == .aaaa, last.rdata.count <= 16 else {
      return Rotation()
    }
    let run = answers.reversed().prefix {
      $0.type == last.type && $0.rdata.count == last.rdata.count && $0.owner == last.owner
    }.count
    let first = answers.count - run
    var start = 0
    if first > 0 {
      // The previous record's TTL is followed by its RDLENGTH and RDATA.
      let length = Int(ttlOffsets[first - 1]) + 4
      start = length + 2 + (Int(body[length]) << 8 | Int(body[length + 1]))
    }
    guard run > 1, Int(ttlOffsets[first]) == start + 6, body[start] & 0xC0 == 0xC0 else { return Rotation() }
    return Rotation(start: UInt16(start), size: UInt8(2 + 10 + last.rdata.count), count: UInt16(run))
  }
}
