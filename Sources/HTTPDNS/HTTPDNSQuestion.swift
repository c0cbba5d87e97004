// HTTPDNSQuestion.swift -- what is asked of a provider.

import DNSWire

/// A question with everything that may change its answer. The class is always IN.
public struct HTTPDNSQuestion: Hashable, Sendable {
  /// QNAME. Its case is not sent: providers see lower case.
  public var name: DomainName
  /// QTYPE.
  public var type: RecordType
  /// DO (RFC 3225): DNSSEC records are wanted.
  public var dnssecOK: Bool
  /// CD (RFC 4035 section 3.2.2): the provider shall not validate.
  public var checkingDisabled: Bool
  /// The subnet that the answer shall suit (RFC 7871); a length of 0 asks the provider to reveal none, nil says
  /// nothing about it.
  public var clientSubnet: IPPrefix?

  /// A question; without further arguments it says neither DO nor CD and names no subnet.
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
