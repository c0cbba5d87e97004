// HTTPDNSAnswer.swift -- what a provider said, checked and put in order.

import DNSWire

/// An answer that passed every check: it is to the question that was asked, its CNAME chain begins at QNAME and has
/// no gap, and each RRset has one TTL.
public struct HTTPDNSAnswer: Equatable, Sendable {
  /// RCODE, extended by the OPT record where there was one. Only NOERROR and NXDOMAIN carry records.
  public var responseCode: ResponseCode
  /// AD: the provider says that it validated everything in here.
  public var isAuthenticated: Bool
  /// The CNAME chain from QNAME on, each link followed by its signatures, then the RRset that was asked for.
  public var answers: [ResourceRecord]
  /// The SOA record of a negative answer, and with DO the records that prove something.
  public var authorities: [ResourceRecord]
  /// Whether the answer says that there is no such data: NXDOMAIN, or NOERROR without a record of the type (NODATA).
  public var isNegative: Bool
  /// Whether the emptiness may mean something else than NODATA: the dialect has no way to tell "no such data" from
  /// "no such name" or "not served to this account".
  public var isEmptyAmbiguous: Bool
  /// SCOPE PREFIX-LENGTH (RFC 7871 section 7.2.1) where the provider gave one to the subnet that was sent.
  public var scopePrefixLength: Int?
  /// The provider's Extended DNS Error (RFC 8914), also beside a response code that is no answer; of several the first
  /// that says why a validator refused the data, or else the first.
  public var extendedError: ExtendedError?

  /// How long a negative answer holds, seconds (RFC 2308 section 5): the lower of its SOA record's TTL and MINIMUM.
  /// Nil without an SOA record.
  public var negativeTTL: UInt32? {
    guard let soa = authorities.first(where: { $0.type == .soa }), soa.rdata.count >= 4 else { return nil }
    let minimum = soa.rdata.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    return min(soa.ttl, ttlValue(minimum))
  }

  /// An answer of those parts; one without records is negative only if it says so.
  public init(
    responseCode: ResponseCode, isAuthenticated: Bool = false, answers: [ResourceRecord] = [],
    authorities: [ResourceRecord] = [], isNegative: Bool = false, isEmptyAmbiguous: Bool = false,
    scopePrefixLength: Int? = nil, extendedError: ExtendedError? = nil
  ) {
    self.responseCode = responseCode
    self.isAuthenticated = isAuthenticated
    self.answers = answers
    self.authorities = authorities
    self.isNegative = isNegative
    self.isEmptyAmbiguous = isEmptyAmbiguous
    self.scopePrefixLength = scopePrefixLength
    self.extendedError = extendedError
  }
}

/// A TTL as it counts: one with the most significant bit set is 0 (RFC 2181 section 8).
func ttlValue(_ ttl: UInt32) -> UInt32 { ttl > UInt32(Int32.max) ? 0 : ttl }
