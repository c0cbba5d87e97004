// ConnectionProbe.swift -- measures an address by one TCP connection without data.
//
// The kernel measures the round trip, so that a busy loop does not add to it. A reset closes the connection and leaves
// no state at either end.

import CSocket
import EventLoop
import Glibc

/// One connection. Reports its outcome once, and not during `init`. Loop thread only.
public final class ConnectionProbe {
  private var descriptor: Int32 = -1
  private var event: LoopEvent?
  private let timer = OwnedTimer()
  private var report: ((ProbeOutcome) -> Void)?

  /// Begins to connect.
  public init(
    to address: SocketAddress, timeout: Duration = probeTimeout, on loop: EventLoop,
    report: @escaping (ProbeOutcome) -> Void
  ) {
    self.report = report
    let outcome = start(address)
    if let outcome {
      timer.set(after: .zero, on: loop, for: self) { $0.end(outcome) }
    } else {
      timer.set(after: timeout, on: loop, for: self) { $0.end(.failed) }
      event = LoopEvent(on: loop, descriptor: descriptor, .write, for: self) { $0.isReady() }
    }
  }

  deinit { cancel() }

  /// Closes the connection without a report.
  public func cancel() {
    report = nil
    timer.cancel()
    // The event must be removed before its descriptor is closed.
    event = nil
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
  }

  /// Begins to connect; returns the outcome if it is known immediately.
  private func start(_ address: SocketAddress) -> ProbeOutcome? {
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    descriptor = socket(address.family, kind, 0)
    guard descriptor >= 0 else { return .notSent(errno: errno) }
    stream_reset_on_close(descriptor)
    let status = address.withSockaddr { connect(descriptor, .init(__sockaddr__: $0), $1) }
    if status == 0 || errno == EINPROGRESS { return nil }
    // The loopback interface refuses immediately; any other error is local and says nothing about the address.
    return errno == ECONNREFUSED ? .failed : .notSent(errno: errno)
  }

  private func isReady() {
    var error: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length)
    guard error == 0 else { return end(Self.outcome(of: error)) }
    var (microseconds, retransmissions): (UInt32, UInt32) = (0, 0)
    guard stream_round_trip(descriptor, &microseconds, &retransmissions) == 0 else {
      return end(.notSent(errno: errno))
    }
    end(retransmissions > 0 ? .spoiled : .answered(microseconds: microseconds))
  }

  /// The outcome for an error of a connection that had begun.
  static func outcome(of error: Int32) -> ProbeOutcome {
    switch error {
    // A reset, or an ICMP error about the address: unreachable in any of its forms, or prohibited.
    case ECONNREFUSED, ECONNRESET, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ETIMEDOUT, EPROTO, ENOPROTOOPT, EACCES,
      EOPNOTSUPP:
      .failed
    default: .notSent(errno: error)
    }
  }

  private func end(_ outcome: ProbeOutcome) {
    let report = report
    cancel()
    report?(outcome)
  }
}
