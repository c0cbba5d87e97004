// Codepoints.swift -- IANA's numbers: record types, response codes, extended errors.

/// A record type (QTYPE or TYPE), RFC 1035 section 3.2.2 and IANA's registry.
public struct RecordType: RawRepresentable, Hashable, Sendable {
  /// The number on the wire.
  public let rawValue: UInt16
  /// The type of that number.
  @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }
  /// The type of that number.
  @inlinable
  public init(_ rawValue: UInt16) { self.rawValue = rawValue }

  public static let a = RecordType(1)
  public static let ns = RecordType(2)
  public static let cname = RecordType(5)
  public static let soa = RecordType(6)
  public static let ptr = RecordType(12)
  public static let hinfo = RecordType(13)
  public static let mx = RecordType(15)
  public static let txt = RecordType(16)
  public static let aaaa = RecordType(28)
  public static let srv = RecordType(33)
  public static let naptr = RecordType(35)
  public static let dname = RecordType(39)
  public static let opt = RecordType(41)
  public static let ds = RecordType(43)
  public static let rrsig = RecordType(46)
  public static let nsec = RecordType(47)
  public static let dnskey = RecordType(48)
  public static let svcb = RecordType(64)
  public static let https = RecordType(65)
  public static let ixfr = RecordType(251)
  public static let axfr = RecordType(252)
  public static let any = RecordType(255)
  public static let caa = RecordType(257)

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
  @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  @inlinable public static var noError: ResponseCode { ResponseCode(rawValue: 0) }
  @inlinable public static var formErr: ResponseCode { ResponseCode(rawValue: 1) }
  @inlinable public static var servFail: ResponseCode { ResponseCode(rawValue: 2) }
  @inlinable public static var nxDomain: ResponseCode { ResponseCode(rawValue: 3) }
  @inlinable public static var notImp: ResponseCode { ResponseCode(rawValue: 4) }
  @inlinable public static var refused: ResponseCode { ResponseCode(rawValue: 5) }
  @inlinable public static var badVers: ResponseCode { ResponseCode(rawValue: 16) }
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
  @inlinable
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  @inlinable public static var other: ExtendedError { ExtendedError(rawValue: 0) }
  @inlinable public static var staleAnswer: ExtendedError { ExtendedError(rawValue: 3) }
  @inlinable public static var cachedError: ExtendedError { ExtendedError(rawValue: 13) }
  @inlinable public static var notReady: ExtendedError { ExtendedError(rawValue: 14) }
  @inlinable public static var blocked: ExtendedError { ExtendedError(rawValue: 15) }
  @inlinable public static var filtered: ExtendedError { ExtendedError(rawValue: 17) }
  @inlinable public static var prohibited: ExtendedError { ExtendedError(rawValue: 18) }
  @inlinable public static var staleNXDomain: ExtendedError { ExtendedError(rawValue: 19) }
  @inlinable public static var notSupported: ExtendedError { ExtendedError(rawValue: 21) }
  @inlinable public static var noReachableAuthority: ExtendedError { ExtendedError(rawValue: 22) }
  @inlinable public static var networkError: ExtendedError { ExtendedError(rawValue: 23) }
  @inlinable public static var invalidData: ExtendedError { ExtendedError(rawValue: 24) }
}
