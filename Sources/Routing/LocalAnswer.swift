// LocalAnswer.swift -- an answer of the route table that needs no upstream.

import DNSWire

/// A record of a local answer. Its owner name is always the QNAME, and its class IN.
public struct LocalRecord: Hashable, Sendable {
  /// TYPE; the QTYPE.
  public let type: RecordType
  /// Seconds.
  public let ttl: UInt32
  /// RDATA; names in it are uncompressed.
  public let rdata: [UInt8]

  public init(type: RecordType, ttl: UInt32, rdata: [UInt8]) {
    self.type = type
    self.ttl = ttl
    self.rdata = rdata
  }
}

/// The owner of the SOA record in a negative local answer (RFC 2308 section 3).
public enum SOAOwner: Hashable, Sendable {
  /// The QNAME, as if it were a zone: one answer serves a blocklist of 100,000 single names.
  case queryName
  /// This zone. The QNAME is at or below it, so it is written as a pointer into the question.
  case zone(DomainName)
}

/// A complete answer that depends only on the question.
public struct LocalAnswer: Hashable, Sendable {
  /// RCODE.
  public let responseCode: ResponseCode
  /// The answer section.
  public let records: [LocalRecord]
  /// The owner of the synthesised SOA record in the authority section; nil for positive answers and REFUSED.
  public let soaOwner: SOAOwner?
  /// Whether AA is set: for local zones and for names with addresses configured by the administrator.
  public let isAuthoritative: Bool
  /// The EDE to add for a client that sent an OPT record.
  public let extendedError: ExtendedError?
  /// The additional section, without the OPT record.
  public let additionals: [ResourceRecord]
  /// The element of `RouteTable.localAnswers` that answers QTYPEs other than that of `records`; nil if `records` are always
  /// of the QTYPE. SVCB and HTTPS have one decision.
  public let otherTypes: UInt32?

  public init(
    responseCode: ResponseCode, records: [LocalRecord], soaOwner: SOAOwner?, isAuthoritative: Bool,
    extendedError: ExtendedError?, additionals: [ResourceRecord] = [], otherTypes: UInt32? = nil
  ) {
    self.additionals = additionals
    self.otherTypes = otherTypes
    self.responseCode = responseCode
    self.records = records
    self.soaOwner = soaOwner
    self.isAuthoritative = isAuthoritative
    self.extendedError = extendedError
  }

  /// The TTL of all records in local answers and of MINIMUM in their SOA record, in seconds.
  ///
  /// One minute: people who edit rules and hosts files wait for the effect, and answering again is cheap.
  public static let ttl: UInt32 = 60

  /// Records of one type, or NODATA if there are none.
  static func records(_ type: RecordType, _ rdata: [[UInt8]], orNoDataOf owner: SOAOwner) -> LocalAnswer {
    guard !rdata.isEmpty else { return noData(of: owner) }
    return LocalAnswer(
      responseCode: .noError, records: rdata.map { LocalRecord(type: type, ttl: ttl, rdata: $0) }, soaOwner: nil,
      isAuthoritative: true, extendedError: nil)
  }

  /// NODATA: the name exists, but not with this type.
  static func noData(of owner: SOAOwner) -> LocalAnswer {
    LocalAnswer(responseCode: .noError, records: [], soaOwner: owner, isAuthoritative: true, extendedError: nil)
  }

  /// The answer as NODATA, for a name that exists.
  var ofExistingName: LocalAnswer {
    LocalAnswer(
      responseCode: .noError, records: [], soaOwner: .queryName, isAuthoritative: isAuthoritative,
      extendedError: extendedError)
  }

  /// NXDOMAIN in a local zone.
  static func nxDomain(of zone: DomainName) -> LocalAnswer {
    LocalAnswer(responseCode: .nxDomain, records: [], soaOwner: .zone(zone), isAuthoritative: true, extendedError: nil)
  }

  /// NXDOMAIN for a name that no upstream can resolve. The SOA record is owned by the name itself: a resolver that forwards to
  /// us would apply one of a parent zone, at worst the root, to all names in that zone.
  static func unknown(isAuthoritative: Bool) -> LocalAnswer {
    LocalAnswer(
      responseCode: .nxDomain, records: [], soaOwner: .queryName, isAuthoritative: isAuthoritative, extendedError: nil)
  }

  /// The answer of a rule with `use = "nxdomain"`, `"nodata"` or `"refused"`.
  static func blocked(_ code: ResponseCode, owner: SOAOwner?) -> LocalAnswer {
    LocalAnswer(responseCode: code, records: [], soaOwner: owner, isAuthoritative: false, extendedError: .blocked)
  }
}
