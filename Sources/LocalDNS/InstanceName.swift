// InstanceName.swift -- names that httpdnsd alone answers, with an address by which each running daemon is known.
//
// Files show what a program should ask, not what it does ask. A lookup of such a name, by any way, shows if the question has
// reached an httpdnsd, and which: another server knows no name below `test` (RFC 6761 section 6.2).
// systemd-resolved forwards them, with DNSSEC as well.

import DNSWire

/// Names below `httpdnsd.test`, and their addresses.
public enum InstanceName {
  /// The zone; the daemon answers every name below it.
  public static let zone = DomainName(text: "httpdnsd.test")!

  /// A name that was never asked for, so no cache on the way has an answer.
  public static func fresh() -> DomainName {
    DomainName(text: "\(String(UInt64.random(in: .min ... .max), radix: 16)).\(zone)")!
  }

  /// An address for a daemon that starts: one of 268 million that no network uses (240.0.0.0/4, RFC 1112 section 4).
  public static func randomAddress() -> IPAddress {
    let number = UInt32.random(in: 0xF000_0001...0xFFFF_FFFE)
    return IPAddress(octets: (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) })!
  }

  /// The daemon's address in a response to a question for A of such a name; nil if the response is not one of httpdnsd.
  static func address(in message: Message) -> IPAddress? {
    guard message.answers.count == 1, message.answers[0].type == .a else { return nil }
    return IPAddress(octets: message.answers[0].rdata).flatMap { isAddress($0) ? $0 : nil }
  }

  /// Whether an address is one that `randomAddress` returns.
  public static func isAddress(_ address: IPAddress) -> Bool { address.octets.count == 4 && address.octets[0] >= 0xF0 }
}
