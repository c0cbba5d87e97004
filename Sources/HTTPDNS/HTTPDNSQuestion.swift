// HTTPDNSQuestion.swift -- a question to a provider.

import DNSWire

/// A question with everything that can change its answer. The class is always IN.
public struct HTTPDNSQuestion: Hashable, Sendable {
  /// QNAME. Dialects send it in lower case.
  public var name: DomainName
  /// QTYPE.
  public var type: RecordType
  /// DO (RFC 3225): the client requests DNSSEC records.
  public var dnssecOK: Bool
  /// CD (RFC 4035 section 3.2.2): asks the provider not to validate.
  public var checkingDisabled: Bool
  /// The subnet that the answer is tailored to (RFC 7871). A length of 0 asks the provider to reveal no subnet; nil
  /// adds no subnet to the request.
  public var clientSubnet: IPPrefix?

  public init(
    name: DomainName, type: RecordType, dnssecOK: Bool = false, checkingDisabled: Bool = false,
    clientSubnet: IPPrefix? = nil
  ) {
    self.name = name
    self.type = type
    self.dnssecOK = dnssecOK
    self.checkingDisabled = checkingDisabled
    self.clientSubnet = clientSubnet
  }
}

extension HTTPDNSQuestion {
  /// Whether it is one for services that have nothing but addresses: A or AAAA, and a name of letters, digits, hyphens
  /// and underscores; not the root.
  var isForAddresses: Bool { (type == .a || type == .aaaa) && name.isPlain && !name.isRoot }
}
