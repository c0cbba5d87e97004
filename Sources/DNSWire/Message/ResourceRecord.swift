// ResourceRecord.swift -- a question and a record as values.

/// A question (RFC 1035 section 4.1.2). Its class is always IN; queries of other classes are refused earlier.
public struct Question: Hashable, Sendable {
  /// QNAME.
  public var name: DomainName
  /// QTYPE.
  public var type: RecordType
  public init(name: DomainName, type: RecordType) {
    self.name = name
    self.type = type
  }
}

/// A resource record of class IN (RFC 1035 section 4.1.3).
public struct ResourceRecord: Hashable, Sendable {
  public var owner: DomainName
  public var type: RecordType
  /// Seconds, 0…2³¹−1 (RFC 2181 section 8).
  public var ttl: UInt32
  /// RDATA; names in it are uncompressed.
  public var rdata: [UInt8]
  public init(owner: DomainName, type: RecordType, ttl: UInt32, rdata: [UInt8]) {
    self.owner = owner
    self.type = type
    self.ttl = ttl
    self.rdata = rdata
  }
}

extension Duration {
  /// Its whole seconds as a TTL, clamped to what 32 bits hold.
  public var ttl: UInt32 { UInt32(clamping: components.seconds) }
}

extension ResourceRecord {
  /// The target of the last CNAME record of a chain.
  package static func target(of chain: [ResourceRecord]) -> DomainName? {
    chain.last { $0.type == .cname }.flatMap { DomainName(octets: $0.rdata) }
  }
}
