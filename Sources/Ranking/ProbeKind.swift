// ProbeKind.swift -- the kinds of probes, and the result of one probe.

import Configuration

/// One way to measure an address.
///
/// If several kinds are configured, an address that answers the first kind is ordered before one that answers only the
/// second, whatever their round trips are.
public typealias ProbeKind = Configuration.Probe

extension ProbeKind {
  /// Whether it is a TCP connection.
  public var isConnection: Bool { if case .tcp = self { true } else { false } }

  /// `icmp` or `tcp`, the label in metrics.
  public var family: String { isConnection ? "tcp" : "icmp" }

  /// A number that is unique to this kind.
  var number: UInt32 {
    switch self {
    case .icmp: 1 << 16
    case .tcp(let port): UInt32(port)
    }
  }
}

/// The result of a measurement.
public enum ProbeResult: Hashable, Sendable {
  /// The address answered after this many microseconds.
  case answered(microseconds: UInt32)
  /// The address refused, an ICMP error arrived, or no answer arrived before the timeout.
  case failed
  /// The probe says nothing about the address: no route, no descriptor, no permission, or an unreliable round trip, for
  /// example after a retransmission.
  case unknown
}
