// CanaryWatch.swift -- detects networks that answer TCP connections to any address.
//
// A transparent proxy answers every connection within a millisecond, so that all addresses seem to be equally near. The
// canary is a connection to an address that does not exist. If it is answered, TCP measurements of its address family
// are ignored on this network.

import DNSWire

/// The last result of the canary for each address family. Other networks' results do not count.
struct CanaryWatch {
  private struct Finding {
    var network: UInt32
    var askedAt: Int64
    var isInFlight = true
    var isVoid = false
  }

  private var findings: [Bool: Finding] = [:]

  private static let hour: Int64 = 3_600_000_000_000

  /// Whether the canary must be sent: true unless it was sent on this network within the last hour.
  func isDue(isIPv6: Bool, on network: UInt32, now: Int64) -> Bool {
    guard let finding = findings[isIPv6], finding.network == network else { return true }
    return now - finding.askedAt >= Self.hour
  }

  /// Records that the canary is sent now. The previous result on this network stays valid until `ended`.
  mutating func asks(isIPv6: Bool, on network: UInt32, now: Int64) {
    findings[isIPv6] = Finding(network: network, askedAt: now, isVoid: isVoid(isIPv6: isIPv6, on: network))
  }

  /// Records the result of the canary.
  ///
  /// - Returns: whether it was answered and had not been before on this network; the caller logs that.
  mutating func ended(hasAnswered: Bool, isIPv6: Bool, on network: UInt32) -> Bool {
    guard let finding = findings[isIPv6], finding.network == network else { return false }
    findings[isIPv6]?.isVoid = hasAnswered
    findings[isIPv6]?.isInFlight = false
    return hasAnswered && !finding.isVoid
  }

  /// Makes the canaries in flight due again, since their connections were cancelled.
  mutating func gaveUp(now: Int64) {
    for (family, finding) in findings where finding.isInFlight { findings[family]?.askedAt = now - Self.hour }
  }

  /// The problem that an answered canary shows, human-readable.
  static func problem(_ kind: ProbeKind, isIPv6: Bool) -> String {
    let family = isIPv6 ? "IPv6" : "IPv4"
    return "an \(family) address that does not exist answers a TCP connection (\(kind)): this network answers "
      + "connections to any address; TCP measurements of \(family) addresses are ignored"
  }

  /// Whether the last canary of a family on this network has ended without an answer.
  func isSilent(isIPv6: Bool, on network: UInt32) -> Bool {
    findings[isIPv6].map { $0.network == network && !$0.isInFlight && !$0.isVoid } ?? false
  }

  /// Whether TCP measurements of a family are ignored on this network.
  func isVoid(isIPv6: Bool, on network: UInt32) -> Bool {
    findings[isIPv6].map { $0.network == network && $0.isVoid } ?? false
  }

  /// A random address of the family's documentation prefix (RFC 5737, RFC 3849).
  static func address(isIPv6: Bool) -> IPAddress {
    if isIPv6 {
      let host = (0..<8).map { _ in UInt8.random(in: 0...255) }
      return IPAddress(octets: [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0] + host)!
    }
    return IPAddress(octets: [198, 51, 100, UInt8.random(in: 1...254)])!
  }
}
