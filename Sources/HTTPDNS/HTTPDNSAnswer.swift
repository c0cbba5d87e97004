// HTTPDNSAnswer.swift -- a provider's answer after every check, with its records in order.

import DNSWire

/// An answer that passed every check: it belongs to the question, its CNAME chain starts at QNAME without a gap, and
/// each RRset has one TTL.
public struct HTTPDNSAnswer: Equatable, Sendable {
  /// RCODE, with the extension of the OPT record if there is one. Only NOERROR and NXDOMAIN have records.
  public var responseCode: ResponseCode
  /// AD: the provider states that it validated all records of the answer.
  public var isAuthenticated: Bool
  /// The CNAME chain from QNAME, each link followed by its signatures, then the RRset of QTYPE.
  public var answers: [ResourceRecord]
  /// The SOA record of a negative answer, and with DO the records that prove nonexistence.
  public var authorities: [ResourceRecord]
  /// Whether this is a negative answer: NXDOMAIN, or NOERROR without a record of QTYPE (NODATA).
  public var isNegative: Bool
  /// Whether an empty answer may mean something other than NODATA, because the dialect does not distinguish "no such
  /// data" from "no such name" or "not served to this account".
  public var isEmptyAmbiguous: Bool
  /// SCOPE PREFIX-LENGTH (RFC 7871 section 7.2.1); nil if the provider returned none for the subnet that was sent.
  public var scopePrefixLength: Int?
  /// The provider's Extended DNS Error (RFC 8914), also with a response code other than NOERROR and NXDOMAIN. Of
  /// several it is the first that states why a validator refused the data, otherwise the first.
  public var extendedError: ExtendedError?

  /// The TTL of a negative answer in seconds (RFC 2308 section 5): the lower of the SOA record's TTL and MINIMUM. Nil
  /// without an SOA record.
  public var negativeTTL: UInt32? {
    guard let soa = authorities.first(where: { $0.type == .soa }), soa.rdata.count >= 4 else { return nil }
    let minimum = soa.rdata.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    return min(soa.ttl, ttlValue(minimum))
  }

  /// How long a negative answer without an SOA record may be kept, in seconds, as the reply states it otherwise; nil if it
  /// does not.
  public var statedTTL: UInt32?

  /// Checks nothing. An answer without records is not negative unless `isNegative` is set.
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
