// Codepoints.swift -- IANA's numbers: record types, response codes, extended errors.

/// A record type (QTYPE or TYPE), RFC 1035 section 3.2.2 and IANA's registry.
public struct RecordType: RawRepresentable, Hashable, Sendable {
  /// The number on the wire.
  public let rawValue: UInt16
  @_noAllocation @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }
  @_noAllocation @inlinable
  public init(_ rawValue: UInt16) { self.rawValue = rawValue }

  /// An IPv4 address, RFC 1035.
  @inlinable public static var a: RecordType { @_noAllocation get { RecordType(1) } }
  /// A name server, RFC 1035.
  @inlinable public static var ns: RecordType { @_noAllocation get { RecordType(2) } }
  /// The canonical name of an alias, RFC 1035.
  @inlinable public static var cname: RecordType { @_noAllocation get { RecordType(5) } }
  /// The start of a zone of authority, RFC 1035.
  @inlinable public static var soa: RecordType { @_noAllocation get { RecordType(6) } }
  /// A pointer to a name, RFC 1035.
  @inlinable public static var ptr: RecordType { @_noAllocation get { RecordType(12) } }
  /// Host information, RFC 1035; the answer to ANY, RFC 8482.
  @inlinable public static var hinfo: RecordType { @_noAllocation get { RecordType(13) } }
  /// A mail exchange, RFC 1035.
  @inlinable public static var mx: RecordType { @_noAllocation get { RecordType(15) } }
  /// Character-strings, RFC 1035.
  @inlinable public static var txt: RecordType { @_noAllocation get { RecordType(16) } }
  /// An IPv6 address, RFC 3596.
  @inlinable public static var aaaa: RecordType { @_noAllocation get { RecordType(28) } }
  /// The location of a service, RFC 2782.
  @inlinable public static var srv: RecordType { @_noAllocation get { RecordType(33) } }
  /// A naming authority pointer, RFC 3403.
  @inlinable public static var naptr: RecordType { @_noAllocation get { RecordType(35) } }
  /// An alias of a subtree, RFC 6672.
  @inlinable public static var dname: RecordType { @_noAllocation get { RecordType(39) } }
  /// The EDNS pseudo-record, RFC 6891.
  @inlinable public static var opt: RecordType { @_noAllocation get { RecordType(41) } }
  /// A delegation signer, RFC 4034.
  @inlinable public static var ds: RecordType { @_noAllocation get { RecordType(43) } }
  /// A signature, RFC 4034.
  @inlinable public static var rrsig: RecordType { @_noAllocation get { RecordType(46) } }
  /// Authenticated denial of existence, RFC 4034.
  @inlinable public static var nsec: RecordType { @_noAllocation get { RecordType(47) } }
  /// A zone's key, RFC 4034.
  @inlinable public static var dnskey: RecordType { @_noAllocation get { RecordType(48) } }
  /// A service binding, RFC 9460.
  @inlinable public static var svcb: RecordType { @_noAllocation get { RecordType(64) } }
  /// A service binding of HTTP, RFC 9460.
  @inlinable public static var https: RecordType { @_noAllocation get { RecordType(65) } }
  /// QTYPE of any type, RFC 8482.
  @inlinable public static var any: RecordType { @_noAllocation get { RecordType(255) } }
  /// Certification authority authorization, RFC 8659.
  @inlinable public static var caa: RecordType { @_noAllocation get { RecordType(257) } }
}

extension RecordType {
  /// Whether no record has this type: 0, which is reserved, and QTYPEs and meta-TYPEs (RFC 6895 section 3.1).
  @inlinable public var isOnlyForQuestions: Bool { @_noAllocation get { rawValue &- 1 > 126 && rawValue < 256 } }

  /// Whether records of this type can be data: it is neither OPT nor only for questions.
  public var isDataType: Bool { !isOnlyForQuestions && self != .opt }
}

/// A response code, RFC 1035 section 4.1.1 and RFC 6895; values above 15 need an OPT record.
public struct ResponseCode: RawRepresentable, Hashable, Sendable {
  /// The number on the wire.
  public let rawValue: UInt16
  @_noAllocation @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// NOERROR: no error condition.
  @inlinable public static var noError: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 0) } }
  /// FORMERR: the query could not be interpreted.
  @inlinable public static var formErr: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 1) } }
  /// SERVFAIL: the server failed.
  @inlinable public static var servFail: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 2) } }
  /// NXDOMAIN: the name does not exist.
  @inlinable public static var nxDomain: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 3) } }
  /// NOTIMP: this kind of query is not supported.
  @inlinable public static var notImp: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 4) } }
  /// REFUSED: by policy.
  @inlinable public static var refused: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 5) } }
  /// BADVERS: this EDNS version is not supported, RFC 6891.
  @inlinable public static var badVers: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 16) } }
}

extension ResponseCode: CustomStringConvertible {
  /// IANA's mnemonic, or `RCODE` and the number.
  public var description: String {
    switch self {
    case .noError: "NOERROR"
    case .formErr: "FORMERR"
    case .servFail: "SERVFAIL"
    case .nxDomain: "NXDOMAIN"
    case .notImp: "NOTIMP"
    case .refused: "REFUSED"
    case .badVers: "BADVERS"
    default: "RCODE\(rawValue)"
    }
  }
}

/// An INFO-CODE of an Extended DNS Error, RFC 8914 section 5.2.
public struct ExtendedError: RawRepresentable, Hashable, Sendable {
  /// The number on the wire.
  public let rawValue: UInt16
  @_noAllocation @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  @inlinable public static var other: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 0) } }
  /// Stale answer, RFC 8767.
  @inlinable public static var staleAnswer: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 3) } }
  @inlinable public static var cachedError: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 13) } }
  @inlinable public static var notReady: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 14) } }
  /// Blocked by this server's operator.
  @inlinable public static var blocked: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 15) } }
  /// Filtered on request of the client.
  @inlinable public static var filtered: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 17) } }
  /// Prohibited: the client is not permitted to query.
  @inlinable public static var prohibited: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 18) } }
  /// Stale NXDOMAIN answer.
  @inlinable public static var staleNXDomain: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 19) } }
  @inlinable public static var notSupported: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 21) } }
  @inlinable public static var noReachableAuthority: ExtendedError {
    @_noAllocation get { ExtendedError(rawValue: 22) }
  }
  /// The results of DNSSEC validation: DNSSEC Bogus to NSEC Missing, RFC 8914 sections 4.7 to 4.13.
  public static let validation: Set<ExtendedError> = Set((6...12).map { ExtendedError(rawValue: $0) })
  @inlinable public static var networkError: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 23) } }
  @inlinable public static var invalidData: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 24) } }
}

/// A CLASS or QCLASS, RFC 1035 section 3.2.4.
public struct RecordClass: RawRepresentable, Hashable, Sendable {
  /// The number on the wire.
  public let rawValue: UInt16
  @_noAllocation @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// IN: the Internet.
  @inlinable public static var internet: RecordClass { @_noAllocation get { RecordClass(rawValue: 1) } }
  /// ANY: a QCLASS only.
  @inlinable public static var any: RecordClass { @_noAllocation get { RecordClass(rawValue: 255) } }
}

/// A decimal number of ASCII digits without sign or spaces; nil if it does not fit.
func decimalNumber<Number: FixedWidthInteger & UnsignedInteger>(
  _ digits: some Collection<UInt8>, as type: Number.Type
) -> Number? {
  guard !digits.isEmpty else { return nil }
  var value: Number = 0
  for digit in digits {
    guard isDigit(digit) else { return nil }
    let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
    let (sum, carry) = tens.addingReportingOverflow(Number(digit - 48))
    guard !overflow, !carry else { return nil }
    value = sum
  }
  return value
}
