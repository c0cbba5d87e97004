// ProbeKind.swift -- how an address is measured, and what one probe found.

/// One way to measure an address. Of several, each is a class of its own: an address that answers the first one comes
/// before an address that answers only the second.
public enum ProbeKind: Hashable, Sendable {
  /// An ICMP or ICMPv6 echo.
  case icmp
  /// A TCP connection to this port.
  case tcp(port: UInt16)

  /// Whether it is a TCP connection.
  public var isConnection: Bool { if case .tcp = self { true } else { false } }

  /// `icmp` or `tcp`, as metrics call it.
  public var family: String { isConnection ? "tcp" : "icmp" }

  /// A number that no other kind has.
  var number: UInt32 {
    switch self {
    case .icmp: 1 << 16
    case .tcp(let port): UInt32(port)
    }
  }
}

extension ProbeKind: CustomStringConvertible {
  /// As in the configuration: `icmp` or `tcp:443`.
  public var description: String {
    switch self {
    case .icmp: "icmp"
    case .tcp(let port): "tcp:\(port)"
    }
  }
}

/// What a measurement found.
public enum ProbeResult: Hashable, Sendable {
  /// The address answered after so many microseconds.
  case answered(microseconds: UInt32)
  /// It refused, an ICMP error came, or nothing came in time.
  case failed
  /// Nothing was learned about the address: no route, no descriptor, no permission, or a retransmission that spoils the
  /// time.
  case unknown
}
