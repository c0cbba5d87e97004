// AddressProber.swift -- what sends a probe; the ranker decides which one and when.

import DNSWire
import Ranking

/// Sends probes. Resolver's loop only.
package protocol AddressProber: AnyObject {
  /// Sends one probe and reports what it found, never during this call.
  func probe(_ address: IPAddress, by kind: ProbeKind, report: @escaping (ProbeResult) -> Void)
  /// Gets ready for probes of these kinds.
  func prepare(_ kinds: Set<ProbeKind>)
  /// Whether a kind can be used for a family: not after the kernel has refused its socket.
  func canUse(_ kind: ProbeKind, isIPv6: Bool) -> Bool
  /// Why a kind cannot be used, human-readable; nil if each can.
  var problem: String? { get }
  /// Ends all probes without a report.
  func cancelAll()
}
