// AddressProber.swift -- sends probes for the ranker, which decides which ones and when.

import DNSWire

/// Sends probes. Resolver's loop only.
package protocol AddressProber: AnyObject {
  /// Sends one probe. Calls `report` once with the result, never during this call, and not after `cancelAll`.
  func probe(_ address: IPAddress, by kind: ProbeKind, report: @escaping (ProbeResult) -> Void)
  /// Opens what probes of these kinds need, so that `canUse` and `problem` are right before the first probe.
  func prepare(_ kinds: Set<ProbeKind>)
  /// Whether a kind can be used for a family; false after the kernel has refused its socket.
  func canUse(_ kind: ProbeKind, isIPv6: Bool) -> Bool
  /// Why a kind cannot be used, human-readable; nil if all can.
  var problem: String? { get }
  /// Cancels all probes without a report. Kinds that the kernel has refused may be tried again.
  func cancelAll()
}
