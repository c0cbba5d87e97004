// LocalAnswer.swift -- what the route table answers by itself, without asking anybody.

import DNSWire

/// A record of a local answer. Its owner name is always the QNAME.
public struct LocalRecord: Hashable, Sendable {
  /// TYPE; always the QTYPE.
  public let type: RecordType
  /// Seconds.
  public let ttl: UInt32
  /// RDATA with every name in it uncompressed.
  public let rdata: [UInt8]

  /// A record of class IN.
  public init(type: RecordType, ttl: UInt32, rdata: [UInt8]) {
    self.type = type
    self.ttl = ttl
    self.rdata = rdata
  }
}

/// Whose SOA record a negative local answer carries (RFC 2308 section 3).
public enum SOAOwner: Hashable, Sendable {
  /// The name asked for is taken for a zone of its own: what a blocklist of 100,000 single names shares.
  case queryName
  /// This zone; the QNAME is at or below it, so that it can be written as a pointer into the question.
  case zone(DomainName)
}

/// A whole answer that depends on nothing but the question.
public struct LocalAnswer: Hashable, Sendable {
  /// RCODE.
  public let responseCode: ResponseCode
  /// The answer section.
  public let records: [LocalRecord]
  /// The owner of the synthesised SOA record in the authority section; nil for positive answers and REFUSED.
  public let soaOwner: SOAOwner?
  /// Whether AA is set: for zones that live here and for names that the administrator has given addresses.
  public let isAuthoritative: Bool
  /// The EDE to add for a client that sent an OPT record.
  public let extendedError: ExtendedError?

  /// An answer of those parts.
  public init(
    responseCode: ResponseCode, records: [LocalRecord], soaOwner: SOAOwner?, isAuthoritative: Bool,
    extendedError: ExtendedError?
  ) {
    self.responseCode = responseCode
    self.records = records
    self.soaOwner = soaOwner
    self.isAuthoritative = isAuthoritative
    self.extendedError = extendedError
  }

  /// Seconds for every record of a local answer, its SOA record and that record's MINIMUM included.
  ///
  /// A minute: rules and hosts files are edited by people who wait for the effect, and answering again costs nothing.
  public static let ttl: UInt32 = 60

  /// Records of one type, or NODATA where there are none.
  static func records(_ type: RecordType, _ rdata: [[UInt8]], orNoDataOf owner: SOAOwner) -> LocalAnswer {
    guard !rdata.isEmpty else { return noData(of: owner) }
    return LocalAnswer(
      responseCode: .noError, records: rdata.map { LocalRecord(type: type, ttl: ttl, rdata: $0) }, soaOwner: nil,
      isAuthoritative: true, extendedError: nil)
  }

  /// The name exists, but not with this type.
  static func noData(of owner: SOAOwner) -> LocalAnswer {
    LocalAnswer(
      responseCode: .noError, records: [], soaOwner: owner, isAuthoritative: true, extendedError: nil)
  }

  /// The name does not exist, in a zone that is answered here.
  static func nxDomain(of zone: DomainName) -> LocalAnswer {
    LocalAnswer(responseCode: .nxDomain, records: [], soaOwner: .zone(zone), isAuthoritative: true, extendedError: nil)
  }

  /// The name does not exist as far as anybody can say here. The SOA record is the name's own: a resolver behind us takes
  /// one of a zone above, the root at worst, for NXDOMAIN of everything in that.
  static func unknown(isAuthoritative: Bool) -> LocalAnswer {
    LocalAnswer(
      responseCode: .nxDomain, records: [], soaOwner: .queryName, isAuthoritative: isAuthoritative, extendedError: nil)
  }

  /// A rule says that the name does not exist, or that nobody may ask for it.
  static func blocked(_ code: ResponseCode, owner: SOAOwner?) -> LocalAnswer {
    LocalAnswer(
      responseCode: code, records: [], soaOwner: owner, isAuthoritative: false, extendedError: .blocked)
  }
}
