// Codepoints.swift -- IANA's numbers: record types, response codes, extended errors.

/// A record type (QTYPE or TYPE), RFC 1035 section 3.2.2 and IANA's registry.
public struct RecordType: RawRepresentable, Hashable, Sendable {
  /// The number on the wire.
  public let rawValue: UInt16
  /// The type of that number.
  @_noAllocation @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }
  /// The type of that number.
  @_noAllocation @inlinable
  public init(_ rawValue: UInt16) { self.rawValue = rawValue }

  @inlinable public static var a: RecordType { @_noAllocation get { RecordType(1) } }
  @inlinable public static var ns: RecordType { @_noAllocation get { RecordType(2) } }
  @inlinable public static var cname: RecordType { @_noAllocation get { RecordType(5) } }
  @inlinable public static var soa: RecordType { @_noAllocation get { RecordType(6) } }
  @inlinable public static var ptr: RecordType { @_noAllocation get { RecordType(12) } }
  @inlinable public static var hinfo: RecordType { @_noAllocation get { RecordType(13) } }
  @inlinable public static var mx: RecordType { @_noAllocation get { RecordType(15) } }
  @inlinable public static var txt: RecordType { @_noAllocation get { RecordType(16) } }
  @inlinable public static var aaaa: RecordType { @_noAllocation get { RecordType(28) } }
  @inlinable public static var srv: RecordType { @_noAllocation get { RecordType(33) } }
  @inlinable public static var naptr: RecordType { @_noAllocation get { RecordType(35) } }
  @inlinable public static var dname: RecordType { @_noAllocation get { RecordType(39) } }
  @inlinable public static var opt: RecordType { @_noAllocation get { RecordType(41) } }
  @inlinable public static var ds: RecordType { @_noAllocation get { RecordType(43) } }
  @inlinable public static var rrsig: RecordType { @_noAllocation get { RecordType(46) } }
  @inlinable public static var nsec: RecordType { @_noAllocation get { RecordType(47) } }
  @inlinable public static var dnskey: RecordType { @_noAllocation get { RecordType(48) } }
  @inlinable public static var svcb: RecordType { @_noAllocation get { RecordType(64) } }
  @inlinable public static var https: RecordType { @_noAllocation get { RecordType(65) } }
  @inlinable public static var ixfr: RecordType { @_noAllocation get { RecordType(251) } }
  @inlinable public static var axfr: RecordType { @_noAllocation get { RecordType(252) } }
  @inlinable public static var any: RecordType { @_noAllocation get { RecordType(255) } }
  @inlinable public static var caa: RecordType { @_noAllocation get { RecordType(257) } }

  static let mnemonics: [(String, RecordType)] = [
    ("A", .a), ("NS", .ns), ("CNAME", .cname), ("SOA", .soa), ("PTR", .ptr), ("HINFO", .hinfo), ("MX", .mx),
    ("TXT", .txt), ("AAAA", .aaaa), ("SRV", .srv), ("NAPTR", .naptr), ("DNAME", .dname), ("OPT", .opt), ("DS", .ds),
    ("RRSIG", .rrsig), ("NSEC", .nsec), ("DNSKEY", .dnskey), ("SVCB", .svcb), ("HTTPS", .https), ("IXFR", .ixfr),
    ("AXFR", .axfr), ("ANY", .any), ("CAA", .caa),
  ]

  /// The type of a mnemonic (`AAAA`), a generic name (`TYPE65534`, RFC 3597) or a decimal number, in any case.
  public init?(text: String) {
    let upper = text.uppercased()
    if let known = RecordType.mnemonics.first(where: { $0.0 == upper }) {
      self = known.1
    } else if let number = UInt16(upper.hasPrefix("TYPE") ? String(upper.dropFirst(4)) : upper) {
      self.init(rawValue: number)
    } else {
      return nil
    }
  }
}

extension RecordType: CustomStringConvertible {
  /// The mnemonic, or `TYPE` and the number.
  public var description: String {
    RecordType.mnemonics.first { $0.1 == self }?.0 ?? "TYPE\(rawValue)"
  }
}

/// A response code, RFC 1035 section 4.1.1 and RFC 6895; values above 15 need an OPT record.
public struct ResponseCode: RawRepresentable, Hashable, Sendable {
  /// The number on the wire.
  public let rawValue: UInt16
  /// The code of that number.
  @_noAllocation @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  @inlinable public static var noError: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 0) } }
  @inlinable public static var formErr: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 1) } }
  @inlinable public static var servFail: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 2) } }
  @inlinable public static var nxDomain: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 3) } }
  @inlinable public static var notImp: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 4) } }
  @inlinable public static var refused: ResponseCode { @_noAllocation get { ResponseCode(rawValue: 5) } }
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
  /// The code of that number.
  @_noAllocation @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  @inlinable public static var other: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 0) } }
  @inlinable public static var staleAnswer: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 3) } }
  @inlinable public static var cachedError: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 13) } }
  @inlinable public static var notReady: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 14) } }
  @inlinable public static var blocked: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 15) } }
  @inlinable public static var filtered: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 17) } }
  @inlinable public static var prohibited: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 18) } }
  @inlinable public static var staleNXDomain: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 19) } }
  @inlinable public static var notSupported: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 21) } }
  @inlinable public static var noReachableAuthority: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 22) } }
  @inlinable public static var networkError: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 23) } }
  @inlinable public static var invalidData: ExtendedError { @_noAllocation get { ExtendedError(rawValue: 24) } }
}
