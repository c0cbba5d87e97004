// QueryReader.swift -- reads a stub resolver's query on the hot path: one pass, no allocation.
//
// The order of the checks is header, QR, OPCODE, counts, question, records, OPT. A query with a readable header is never
// dropped: the caller gets the RCODE to answer with (RFC 8906).

/// What to do with a message.
public enum QueryVerdict: UInt8, Sendable {
  /// A well-formed query of OPCODE QUERY: answer its question.
  case query
  /// Answer FORMERR at once; `Query.questionEnd` says whether a question can be echoed.
  case formErr
  /// Answer NOTIMP at once.
  case notImp
  /// Answer BADVERS at once.
  case badVers
  /// Too short to have an ID, or a response: no answer (RFC 1035 section 4.1.1).
  case drop
}

/// The client subnet of a query (RFC 7871 section 6). The address is padded with zero octets.
public struct QueryClientSubnet: Hashable, Sendable {
  /// IANA's address family number, 1 for IPv4 and 2 for IPv6; 0 if the query has no such option.
  public var family: UInt16 = 0
  /// SOURCE PREFIX-LENGTH, in bits.
  public var sourceLength: UInt8 = 0
  /// The first eight octets of the address as a big-endian number.
  public var high: UInt64 = 0
  /// The last eight octets of an IPv6 address.
  public var low: UInt64 = 0

  /// The default values mean that there is no subnet.
  @_noAllocation @inlinable
  public init(family: UInt16 = 0, sourceLength: UInt8 = 0, high: UInt64 = 0, low: UInt64 = 0) {
    self.family = family
    self.sourceLength = sourceLength
    self.high = high
    self.low = low
  }
}

/// The contents of a query, in fixed-size fields.
public struct Query: Sendable {
  /// The message ID.
  public var id: UInt16 = 0
  /// The flags word of the header, unchanged.
  public var flags: UInt16 = 0
  /// Octets of QNAME in wire form; 0 if it could not be read.
  public var nameLength: Int = 0
  /// QTYPE.
  public var type: UInt16 = 0
  public var qclass: UInt16 = 0
  /// The offset of the end of the question section; 12 if there is no readable question.
  public var questionEnd: Int = 12
  /// Whether the query has an OPT record; the response must then have one too (RFC 6891 section 6.1.1).
  public var hasOPT = false
  /// The DO bit (RFC 3225).
  public var dnssecOK = false
  /// The UDP payload size that the client accepts; 512 without OPT.
  public var udpPayload: Int = 512
  /// Whether the client sent edns-tcp-keepalive (RFC 7828).
  public var wantsKeepalive = false
  /// Whether the client sent padding (RFC 7830); over TLS it then gets a padded response.
  public var wantsPadding = false
  /// Whether the client sent a client subnet option that violates RFC 7871 section 6.
  public var hasBrokenSubnet = false
  /// The client subnet option (RFC 7871); family 0 without one.
  public var clientSubnet = QueryClientSubnet()

  @_noAllocation @inlinable
  public init() {}

  /// The RD bit.
  @inlinable public var recursionDesired: Bool { @_noAllocation get { flags & HeaderFlag.rd != 0 } }
  /// The CD bit: the client validates itself (RFC 4035 section 3.2.2).
  @inlinable public var checkingDisabled: Bool { @_noAllocation get { flags & HeaderFlag.cd != 0 } }
  /// Whether the client understands the AD bit (RFC 6840 section 5.7).
  @inlinable public var wantsAuthenticData: Bool { @_noAllocation get { flags & HeaderFlag.ad != 0 || dnssecOK } }
}

/// The bits of the header's flags word, RFC 1035 section 4.1.1 and RFC 4035 section 3.1.6.
public enum HeaderFlag {
  /// Response.
  @inlinable public static var qr: UInt16 { @_noAllocation get { 0x8000 } }
  /// Authoritative answer.
  @inlinable public static var aa: UInt16 { @_noAllocation get { 0x0400 } }
  /// Truncated.
  @inlinable public static var tc: UInt16 { @_noAllocation get { 0x0200 } }
  /// Recursion desired.
  @inlinable public static var rd: UInt16 { @_noAllocation get { 0x0100 } }
  /// Recursion available.
  @inlinable public static var ra: UInt16 { @_noAllocation get { 0x0080 } }
  /// Authentic data.
  @inlinable public static var ad: UInt16 { @_noAllocation get { 0x0020 } }
  /// Checking disabled.
  @inlinable public static var cd: UInt16 { @_noAllocation get { 0x0010 } }
  /// The four bits of OPCODE.
  @inlinable public static var opcode: UInt16 { @_noAllocation get { 0x7800 } }
}

public enum QueryReader {
  /// Octets of the header.
  @inlinable public static var headerLength: Int { @_noAllocation get { 12 } }

  /// Reads `message` into `query`, as far as it is well-formed. Any thread; does not allocate.
  ///
  /// - Returns: what to do with the message. For an error, `query` has ID, flags and, if readable, the question to echo.
  @_noAllocation
  public static func read(_ message: Span<UInt8>, into query: inout Query) -> QueryVerdict {
    guard message.count >= headerLength else { return .drop }
    query = Query()
    query.id = word(message, 0)
    query.flags = word(message, 2)
    guard query.flags & HeaderFlag.qr == 0 else { return .drop }
    let header = readHeader(message, query)
    var position = headerLength
    var questions = word(message, 4)
    while questions > 0 {
      guard skipQuestion(message, &position) else { return worse(header, .formErr) }
      if word(message, 4) == 1 { noteQuestion(message, end: position, into: &query) }
      questions -= 1
    }
    return worse(header, readRecords(message, from: position, into: &query))
  }

  /// Reads a query to its end even if its header is refused: an OPT record in it requires one in the response.
  @_noAllocation
  private static func readHeader(_ message: Span<UInt8>, _ query: Query) -> QueryVerdict {
    guard query.flags & HeaderFlag.opcode == 0 else { return .notImp }
    guard word(message, 4) == 1, word(message, 6) == 0 else { return .formErr }
    return .query
  }

  /// Copies QNAME into `output` in lower case. The buffer must hold at least `NameLimit.name` octets.
  @_noAllocation
  public static func lowercaseName(of message: Span<UInt8>, length: Int, into output: UnsafeMutablePointer<UInt8>) {
    guard length >= 0, headerLength + length <= message.count else { return }
    var offset = 0
    while offset < length {
      output[offset] = asciiLowercase(message[headerLength &+ offset])
      offset &+= 1
    }
  }

  /// The verdict of the header checks; nil if the header is fine.
  @_noAllocation
  private static func worse(_ header: QueryVerdict, _ body: QueryVerdict) -> QueryVerdict {
    if case .query = header { body } else { header }
  }

  /// Reads QNAME without pointers: a pointer there could only point into the header.
  @_noAllocation
  private static func skipQuestion(_ message: Span<UInt8>, _ position: inout Int) -> Bool {
    let start = position
    while position < message.count {
      let length = Int(message[position])
      guard length <= NameLimit.label else { return false }
      position += length + 1
      guard position - start <= NameLimit.name else { return false }
      if length == 0 {
        position += 4
        return position <= message.count
      }
    }
    return false
  }

  @_noAllocation
  private static func noteQuestion(_ message: Span<UInt8>, end: Int, into query: inout Query) {
    query.nameLength = end - 4 - headerLength
    query.type = word(message, end - 4)
    query.qclass = word(message, end - 2)
    query.questionEnd = end
  }

  /// Walks the records and reads the OPT record, which must be in the additional section.
  @_noAllocation
  private static func readRecords(_ message: Span<UInt8>, from start: Int, into query: inout Query) -> QueryVerdict {
    let additionals = Int(word(message, 6)) + Int(word(message, 8))
    let records = additionals + Int(word(message, 10))
    var position = start
    var verdict = QueryVerdict.query
    var index = 0
    while index < records {
      let owner = position
      guard skipName(message, &position), position + 10 <= message.count else { return .formErr }
      let type = word(message, position)
      let length = Int(word(message, position + 8))
      let start = position + 10
      guard start + length <= message.count else { return .formErr }
      if type == RecordType.opt.rawValue {
        guard index >= additionals, !query.hasOPT, message[owner] == 0 else { return .formErr }
        verdict = readOPT(message, fixed: position, end: start + length, into: &query)
      }
      position = start + length
      index += 1
    }
    if query.type == RecordType.opt.rawValue { return .formErr }
    return verdict
  }

  @_noAllocation
  private static func readOPT(
    _ message: Span<UInt8>, fixed: Int, end: Int, into query: inout Query
  ) -> QueryVerdict {
    query.hasOPT = true
    let payload = Int(word(message, fixed + 2))
    query.udpPayload = payload < 512 ? 512 : payload
    query.dnssecOK = message[fixed + 6] & 0x80 != 0
    // The options of a later version may have another form.
    guard message[fixed + 5] == 0 else { return .badVers }
    var position = fixed + 10
    while position < end {
      guard position + 4 <= end else { return .formErr }
      let code = word(message, position)
      let length = Int(word(message, position + 2))
      let start = position + 4
      guard start + length <= end else { return .formErr }
      if code == EDNSOption.clientSubnet {
        if !readClientSubnet(message, at: start, length: length, into: &query.clientSubnet) {
          query.hasBrokenSubnet = true
        }
      } else if code == EDNSOption.tcpKeepalive {
        query.wantsKeepalive = true
      } else if code == EDNSOption.padding {
        query.wantsPadding = true
      }
      position = start + length
    }
    return .query
  }

  /// Reads the option by RFC 7871 section 6: exactly the address octets that the prefix needs, bits after it zero, scope 0.
  @_noAllocation
  private static func readClientSubnet(
    _ message: Span<UInt8>, at start: Int, length: Int, into subnet: inout QueryClientSubnet
  ) -> Bool {
    guard length >= 4 else { return false }
    let family = word(message, start)
    let bits = Int(message[start + 2])
    guard message[start + 3] == 0, family <= 2 else { return false }
    // An empty option of family 0 means "no subnet", like family 1 with length 0. `dig +subnet=0` sends it.
    if family == 0 { return bits == 0 && length == 4 }
    guard bits <= (family == 1 ? 32 : 128), length == 4 + (bits + 7) / 8 else { return false }
    subnet = QueryClientSubnet(family: family, sourceLength: UInt8(bits), high: 0, low: 0)
    var index = 0
    while index < length - 4 {
      let octet = UInt64(message[start + 4 + index])
      if index < 8 {
        subnet.high |= octet << UInt64(56 - 8 * index)
      } else {
        subnet.low |= octet << UInt64(56 - 8 * (index - 8))
      }
      index += 1
    }
    return subnet.masked(to: bits).isSame(as: subnet)
  }

  /// The most pointers in one name. A name has at most 127 labels, and each useful pointer precedes or follows one.
  @inlinable static var maximumPointers: Int { @_noAllocation get { 127 } }

  /// Steps over a name: labels, or labels and a backward pointer, whose target is checked too.
  @_noAllocation
  private static func skipName(_ message: Span<UInt8>, _ position: inout Int) -> Bool {
    var length = 0
    var pointers = 0
    var label = position
    // The target must lie entirely before the part with the pointer, so that no octet is visited twice.
    var partStart = position
    var partLimit = message.count
    while true {
      guard label < partLimit else { return false }
      let count = Int(message[label])
      if count <= NameLimit.label {
        length += count + 1
        label += count + 1
        guard length <= NameLimit.name else { return false }
        guard count == 0 else { continue }
        if pointers == 0 { position = label }
        return true
      } else {
        guard count >= 0xC0, label + 1 < partLimit else { return false }
        let target = Int(word(message, label) & 0x3FFF)
        pointers += 1
        guard target < partStart, pointers <= maximumPointers else { return false }
        if pointers == 1 { position = label + 2 }
        partLimit = partStart
        partStart = target
        label = target
      }
    }
  }

  @_noAllocation @inline(__always)
  private static func word(_ message: Span<UInt8>, _ offset: Int) -> UInt16 {
    UInt16(message[offset]) << 8 | UInt16(message[offset + 1])
  }
}

/// The EDNS option codes used here, from IANA's registry.
public enum EDNSOption {
  /// EDNS Client Subnet, RFC 7871.
  @inlinable public static var clientSubnet: UInt16 { @_noAllocation get { 8 } }
  /// edns-tcp-keepalive, RFC 7828.
  @inlinable public static var tcpKeepalive: UInt16 { @_noAllocation get { 11 } }
  /// Padding, RFC 7830.
  @inlinable public static var padding: UInt16 { @_noAllocation get { 12 } }
  /// Extended DNS Error, RFC 8914.
  @inlinable public static var extendedError: UInt16 { @_noAllocation get { 15 } }
}

extension QueryClientSubnet {
  /// The subnet truncated to at most `bits` bits.
  @_noAllocation @inlinable
  public func masked(to bits: Int) -> QueryClientSubnet {
    let used = bits < Int(sourceLength) ? bits : Int(sourceLength)
    let highMask: UInt64 = used >= 64 ? .max : ~(UInt64.max >> UInt64(used))
    let lowMask: UInt64 = used <= 64 ? 0 : used >= 128 ? .max : ~(UInt64.max >> UInt64(used - 64))
    return QueryClientSubnet(family: family, sourceLength: UInt8(used), high: high & highMask, low: low & lowMask)
  }

  /// Whether both subnets are equal.
  @_noAllocation @inlinable
  public func isSame(as other: QueryClientSubnet) -> Bool {
    family == other.family && sourceLength == other.sourceLength && high == other.high && low == other.low
  }
}
