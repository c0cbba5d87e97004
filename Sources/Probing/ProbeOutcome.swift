// ProbeOutcome.swift -- what one probe of an address found.

/// The result of one connection or one echo.
public enum ProbeOutcome: Hashable, Sendable {
  /// The address answered, with this round trip in microseconds.
  case answered(microseconds: UInt32)
  /// It refused the connection, an ICMP error came, or nothing came in time.
  case failed
  /// Nothing was learned about the address, because a segment was lost and sent again.
  case spoiled
  /// Nothing was sent, for this `errno`: no route, no descriptor, no permission.
  case notSent(errno: Int32)
}

/// How long a probe waits for an answer.
public let probeTimeout = Duration.seconds(1)
