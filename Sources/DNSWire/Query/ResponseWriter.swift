// ResponseWriter.swift -- puts header, question and OPT around a response's body: the last step of every answer.
//
// The body (answer and authority sections) is already in the output, directly after the place of the question. If the
// response exceeds the limits, as much of the body as the limits allow is enough.

/// The properties of a response apart from its body.
public struct ResponseHead: Sendable {
  /// RCODE, with the extended bits.
  public var responseCode: UInt16 = 0
  /// AA: the answer comes from a local zone of the daemon.
  public var isAuthoritative = false
  /// AD: a trusted upstream validated the answer.
  public var isAuthenticated = false
  /// ANCOUNT.
  public var answers: UInt16 = 0
  /// NSCOUNT.
  public var authorities: UInt16 = 0
  /// Octets of the body.
  public var bodyLength = 0
  /// INFO-CODE of an Extended DNS Error, or `noExtendedError`.
  public var extendedError: UInt16 = ResponseHead.noExtendedError
  /// The SCOPE PREFIX-LENGTH for the response, or -1 if the client's subnet option was not used.
  public var subnetScope: Int16 = -1

  /// Stands for "none": a private-use value that is never sent.
  @inlinable public static var noExtendedError: UInt16 { @_noAllocation get { 0xFFFF } }

  /// NOERROR without records.
  @_noAllocation @inlinable
  public init() {}

  @_noAllocation @inlinable
  public init(responseCode: UInt16, extendedError: UInt16 = 0xFFFF) {
    self.responseCode = responseCode
    self.extendedError = extendedError
  }
}

/// The limits of a transport.
public struct ResponseLimits: Sendable {
  /// The largest response in octets.
  public var size: Int
  /// The UDP payload size to advertise in OPT.
  public var advertisedPayload: UInt16
  /// The options for queries that ask for them.
  public var options: StreamOptions

  @_noAllocation @inlinable
  public init(size: Int, advertisedPayload: UInt16, options: StreamOptions = StreamOptions()) {
    self.size = size
    self.advertisedPayload = advertisedPayload
    self.options = options
  }

  /// The limits over a stream.
  @_noAllocation @inlinable
  public static func stream(_ options: StreamOptions, advertisedPayload: Int) -> ResponseLimits {
    ResponseLimits(size: 65_535, advertisedPayload: UInt16(truncatingIfNeeded: advertisedPayload), options: options)
  }

  /// The limits over UDP: the client's payload size, but at most `maximum` (DNS Flag Day 2020).
  @_noAllocation @inlinable
  public static func udp(_ query: Query, maximum: Int) -> ResponseLimits {
    ResponseLimits(
      size: query.udpPayload < maximum ? query.udpPayload : maximum, advertisedPayload: UInt16(maximum))
  }
}

/// Completes responses.
public enum ResponseWriter {
  /// The largest size of header, question and OPT together. An output buffer needs this much room in addition to the body.
  @inlinable public static var overhead: Int { @_noAllocation get { 12 + 255 + 4 + 11 + 6 + 6 + 24 } }

  /// Writes header, question and OPT around the body, which must be at `query.questionEnd` of `output`. Does not allocate.
  ///
  /// A response that exceeds the limits becomes a truncated one, with the addresses that fit or with empty sections; see
  /// `addressesThatFit`.
  /// - Parameters:
  ///   - message: the client's query, whose question is echoed octet by octet.
  ///   - output: must have room for `overhead` and the body. Of a body that ends beyond `limits.size`, the octets before
  ///     `limits.size` must be there.
  /// - Returns: the length of the response, padded where `limits.options` and the query say so.
  @_noAllocation
  public static func complete(
    _ query: Query, of message: Span<UInt8>, _ head: ResponseHead, _ limits: ResponseLimits,
    into output: UnsafeMutablePointer<UInt8>
  ) -> Int {
    let optLength = query.hasOPT ? lengthOfOPT(query, head, limits) : 0
    var (answers, authorities, end) = (head.answers, head.authorities, query.questionEnd + head.bodyLength)
    var flags = HeaderFlag.qr | HeaderFlag.ra
    flags |= query.flags & (HeaderFlag.opcode | HeaderFlag.rd | HeaderFlag.cd)
    if head.isAuthoritative { flags |= HeaderFlag.aa }
    if head.isAuthenticated, query.wantsAuthenticData { flags |= HeaderFlag.ad }
    if end + optLength > limits.size {
      flags |= HeaderFlag.tc
      authorities = 0
      (answers, end) = addressesThatFit(query, head, output, limit: limits.size - optLength)
    }
    store(query.id, output, 0)
    store(flags | (head.responseCode & 0xF), output, 2)
    store(query.nameLength > 0 ? 1 : 0, output, 4)
    store(answers, output, 6)
    store(authorities, output, 8)
    store(query.hasOPT ? 1 : 0, output, 10)
    var offset = QueryReader.headerLength
    while offset < query.questionEnd {
      output[offset] = message[offset]
      offset &+= 1
    }
    guard query.hasOPT else { return end }
    writeOPT(query, head, limits, length: optLength, output + end)
    guard !limits.options.isEmpty else { return end + optLength }
    return writeStreamOptions(query, limits, opt: end, end: end + optLength, output)
  }

  /// Counts additional records that are the end of the body of a completed response; a truncated one has none.
  @_noAllocation
  public static func count(additionals: UInt16, in output: UnsafeMutablePointer<UInt8>) {
    guard load(output, 2) & HeaderFlag.tc == 0 else { return }
    store(load(output, 10) &+ additionals, output, 10)
  }

  /// The records of a truncated response to a query for addresses: part of the RRset may stay in it (RFC 2181 section 9),
  /// for clients that do not repeat the query over TCP. They are whole records from the start of the answer section, so
  /// that every compression pointer leads to a record before it.
  ///
  /// There are none if no address of the type in question fits, and for clients that may validate, since a signature
  /// covers the whole RRset.
  /// - Returns: ANCOUNT and the end of the records.
  @_noAllocation @inline(never)
  private static func addressesThatFit(
    _ query: Query, _ head: ResponseHead, _ output: UnsafeMutablePointer<UInt8>, limit: Int
  ) -> (answers: UInt16, end: Int) {
    guard query.type == RecordType.a.rawValue || query.type == RecordType.aaaa.rawValue, !query.dnssecOK else {
      return (0, query.questionEnd)
    }
    let bodyEnd = query.questionEnd + head.bodyLength
    let limit = limit < bodyEnd ? limit : bodyEnd
    var (answers, end, hasAddress): (UInt16, Int, Bool) = (0, query.questionEnd, false)
    while answers < head.answers {
      var position = end
      // The owner: labels, then a pointer of two octets or the root.
      while position < limit, output[position] != 0, output[position] < 0xC0 { position += Int(output[position]) + 1 }
      guard position < limit else { break }
      position += output[position] == 0 ? 1 : 2
      guard position + 10 <= limit else { break }
      let type = load(output, position)
      position += 10 + Int(load(output, position + 8))
      guard position <= limit else { break }
      if type == query.type { hasAddress = true }
      answers += 1
      end = position
    }
    return hasAddress ? (answers, end) : (0, query.questionEnd)
  }

  @_noAllocation
  private static func lengthOfOPT(_ query: Query, _ head: ResponseHead, _ limits: ResponseLimits) -> Int {
    var length = 11
    if head.extendedError != ResponseHead.noExtendedError { length += 6 }
    if !limits.options.isEmpty { length += limits.options.fixedLength(for: query) }
    if head.subnetScope >= 0 { length += 8 + (Int(query.clientSubnet.sourceLength) + 7) / 8 }
    return length
  }

  @_noAllocation
  private static func writeOPT(
    _ query: Query, _ head: ResponseHead, _ limits: ResponseLimits, length: Int, _ output: UnsafeMutablePointer<UInt8>
  ) {
    output[0] = 0
    store(RecordType.opt.rawValue, output, 1)
    store(limits.advertisedPayload, output, 3)
    output[5] = UInt8(truncatingIfNeeded: head.responseCode >> 4)
    output[6] = 0
    store(query.dnssecOK ? 0x8000 : 0, output, 7)
    store(UInt16(length - 11), output, 9)
    var position = 11
    if head.extendedError != ResponseHead.noExtendedError {
      store(EDNSOption.extendedError, output, position)
      store(2, output, position + 2)
      store(head.extendedError, output, position + 4)
      position += 6
    }
    if head.subnetScope >= 0 { writeSubnet(query.clientSubnet, scope: head.subnetScope, output + position) }
  }

  /// Writes the idle timeout at the end of an OPT record that has room for it, and appends the padding.
  ///
  /// - Parameters:
  ///   - opt: where the OPT record begins.
  ///   - end: where the message ends.
  /// - Returns: the length of the message.
  @_noAllocation @inline(never)
  private static func writeStreamOptions(
    _ query: Query, _ limits: ResponseLimits, opt: Int, end: Int, _ output: UnsafeMutablePointer<UInt8>
  ) -> Int {
    if limits.options.fixedLength(for: query) > 0 {
      store(EDNSOption.tcpKeepalive, output, end - 6)
      store(2, output, end - 4)
      store(UInt16(truncatingIfNeeded: limits.options.keepalive), output, end - 2)
    }
    guard limits.options.isPadded, query.wantsPadding else { return end }
    let count = Padding.count(after: end, limit: limits.size)
    guard count >= 0 else { return end }
    store(EDNSOption.padding, output, end)
    store(UInt16(truncatingIfNeeded: count), output, end + 2)
    var index = 0
    while index < count {
      output[end + 4 + index] = 0
      index &+= 1
    }
    // RDLENGTH.
    store(load(output, opt + 9) &+ UInt16(truncatingIfNeeded: 4 + count), output, opt + 9)
    return end + 4 + count
  }

  @_noAllocation
  private static func writeSubnet(
    _ subnet: QueryClientSubnet, scope: Int16, _ output: UnsafeMutablePointer<UInt8>
  ) {
    let count = (Int(subnet.sourceLength) + 7) / 8
    store(EDNSOption.clientSubnet, output, 0)
    store(UInt16(4 + count), output, 2)
    store(subnet.family, output, 4)
    output[6] = subnet.sourceLength
    output[7] = UInt8(truncatingIfNeeded: scope)
    var index = 0
    while index < count {
      let word = index < 8 ? subnet.high : subnet.low
      output[8 + index] = UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * (index & 7)))
      index += 1
    }
  }

  @_noAllocation @inline(__always)
  private static func store(_ value: UInt16, _ output: UnsafeMutablePointer<UInt8>, _ offset: Int) {
    output[offset] = UInt8(truncatingIfNeeded: value >> 8)
    output[offset + 1] = UInt8(truncatingIfNeeded: value)
  }

  @_noAllocation @inline(__always)
  private static func load(_ output: UnsafeMutablePointer<UInt8>, _ offset: Int) -> UInt16 {
    UInt16(output[offset]) << 8 | UInt16(output[offset + 1])
  }
}
