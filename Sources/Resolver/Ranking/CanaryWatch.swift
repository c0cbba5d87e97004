// CanaryWatch.swift -- whether connections to addresses that do not exist succeed, by network and family.
//
// A transparent proxy answers every connection within a millisecond: the figures of all addresses are then its own.

import DNSWire
import Ranking

/// What is known of the current network.
struct CanaryWatch {
  private struct Finding {
    var network: UInt32
    var askedAt: Int64
    var isUnderWay = true
    var isVoid = false
  }

  private var findings: [Bool: Finding] = [:]

  private static let hour: Int64 = 3_600_000_000_000

  /// Whether the canary has to be asked: not within the last hour on this network.
  func isDue(isIPv6: Bool, on network: UInt32, now: Int64) -> Bool {
    guard let finding = findings[isIPv6], finding.network == network else { return true }
    return now - finding.askedAt >= Self.hour
  }

  /// It is asked now. What was found on this network before holds until it has answered.
  mutating func asks(isIPv6: Bool, on network: UInt32, now: Int64) {
    findings[isIPv6] = Finding(network: network, askedAt: now, isVoid: isVoid(isIPv6: isIPv6, on: network))
  }

  /// It has answered or not.
  ///
  /// - Returns: whether it has answered and had not before.
  mutating func ended(hasAnswered: Bool, isIPv6: Bool, on network: UInt32) -> Bool {
    guard let finding = findings[isIPv6], finding.network == network else { return false }
    findings[isIPv6]?.isVoid = hasAnswered
    findings[isIPv6]?.isUnderWay = false
    return hasAnswered && !finding.isVoid
  }

  /// Connections that had not ended were given up: they are due again.
  mutating func gaveUp(now: Int64) {
    for (family, finding) in findings where finding.isUnderWay { findings[family]?.askedAt = now - Self.hour }
  }

  /// What something on the way that answers every connection means for the figures, human-readable.
  static func problem(_ kind: ProbeKind, isIPv6: Bool) -> String {
    "an \(isIPv6 ? "IPv6" : "IPv4") address that does not exist answers a TCP connection (\(kind)): something on this "
      + "network answers for everybody, so TCP probes say nothing here"
  }

  /// Whether the canary of a family has been asked on this network and has not answered.
  func isSilent(isIPv6: Bool, on network: UInt32) -> Bool {
    findings[isIPv6].map { $0.network == network && !$0.isUnderWay && !$0.isVoid } ?? false
  }

  /// Whether the figures of connections are void.
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
