// ProbeOutcome.swift -- the result of one probe of an address.

/// The result of one connection or one echo.
public enum ProbeOutcome: Hashable, Sendable {
  /// The address answered, with this round trip in microseconds.
  case answered(microseconds: UInt32)
  /// The address refused the connection, an ICMP error arrived, or no answer arrived before the timeout.
  case failed
  /// The round trip is unreliable, because a segment was sent again or the system clock was set.
  case spoiled
  /// Nothing was sent. The `errno` says why: no route, no descriptor, no permission.
  case notSent(errno: Int32)
}

/// How long a probe waits for an answer.
public let probeTimeout = Duration.seconds(1)
