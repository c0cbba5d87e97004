// SocketProber.swift -- sends the ranker's probes through sockets.

import Configuration
import DNSWire
import EventLoop
import Glibc
import Probing

/// Sends probes as TCP connections and ICMP echo requests. Resolver's loop only.
package final class SocketProber: AddressProber {
  private let loop: EventLoop
  private let warn: @Sendable (String) -> Void
  private var connections: [UInt64: ConnectionProbe] = [:]
  private var nextNumber: UInt64 = 0
  private var sockets: [Int32: EchoSocket] = [:]
  /// Families whose ping sockets the kernel refuses.
  private var refused: Set<Int32> = []
  /// The warning that was logged for the first refusal; nil if the kernel has refused nothing.
  package private(set) var problem: String?

  /// Creates a prober without sockets.
  ///
  /// - Parameter warn: logs a warning.
  package init(on loop: EventLoop, warn: @escaping @Sendable (String) -> Void) {
    self.loop = loop
    self.warn = warn
  }

  package func probe(_ address: IPAddress, by kind: ProbeKind, report: @escaping (ProbeResult) -> Void) {
    switch kind {
    case .tcp(let port):
      guard let target = SocketAddress(octets: address.octets, port: port) else { return }
      let number = nextNumber
      nextNumber += 1
      connections[number] = ConnectionProbe(to: target, on: loop) { [weak self] outcome in
        self?.connections[number] = nil
        report(ProbeResult(outcome))
      }
    case .icmp:
      guard let target = SocketAddress(octets: address.octets, port: 0) else { return }
      socket(target.family).ping(target) { [weak self] outcome in
        if case .notSent(let error) = outcome { self?.note(error, target.family) }
        report(ProbeResult(outcome))
      }
    }
  }

  /// Opens the ping sockets for ICMP, so that a refusal is known before the first probe.
  package func prepare(_ kinds: Set<ProbeKind>) {
    guard kinds.contains(.icmp) else { return }
    for family in [AF_INET, AF_INET6] {
      if let error = socket(family).open() { note(error, family) }
    }
  }

  private func socket(_ family: Int32) -> EchoSocket {
    let socket = sockets[family] ?? EchoSocket(family: family, on: loop)
    sockets[family] = socket
    return socket
  }

  package func canUse(_ kind: ProbeKind, isIPv6: Bool) -> Bool {
    kind != .icmp || !refused.contains(isIPv6 ? AF_INET6 : AF_INET)
  }

  package func cancelAll() {
    connections = [:]
    for socket in sockets.values { socket.close() }
    sockets = [:]
    // net.ipv4.ping_group_range may have changed before a reload.
    refused = []
    problem = nil
  }

  private func note(_ error: Int32, _ family: Int32) {
    guard error == EACCES || error == EPERM else { return }
    refused.insert(family)
    guard problem == nil else { return }
    let problem = PingPermission.problem
    self.problem = problem
    warn(problem)
  }
}

extension ProbeResult {
  fileprivate init(_ outcome: ProbeOutcome) {
    switch outcome {
    case .answered(let microseconds): self = .answered(microseconds: microseconds)
    case .failed: self = .failed
    case .spoiled, .notSent: self = .unknown
    }
  }
}
