// ScriptedProber.swift -- addresses that answer probes as a test says, on the simulated loop.

import DNSWire
import EventLoop
import Ranking
import TestSupport

@testable import Resolver

/// Answers probes by a function, after the round trip or after a second of silence.
final class ScriptedProber: AddressProber {
  struct Sent {
    var address: IPAddress
    var kind: ProbeKind
    var at: BootInstant
  }

  private(set) var sent: [Sent] = []
  /// Probes that have not ended, and the most at a time.
  private(set) var inFlight = 0
  private(set) var mostInFlight = 0
  /// Milliseconds to an address; nil for silence.
  var milliseconds: (IPAddress, ProbeKind) -> Double? = { _, _ in nil }
  /// Addresses that refuse at once.
  var refuses: (IPAddress, ProbeKind) -> Bool = { _, _ in false }
  var isPingRefused = false
  /// The kinds of the last call of `prepare`.
  private(set) var prepared: Set<ProbeKind> = []
  private let loop: SimulatedLoop
  private var timers: [OwnedTimer] = []

  init(on loop: SimulatedLoop) { self.loop = loop }

  func probe(_ address: IPAddress, by kind: ProbeKind, report: @escaping (ProbeResult) -> Void) {
    sent.append(Sent(address: address, kind: kind, at: loop.now))
    inFlight += 1
    mostInFlight = max(mostInFlight, inFlight)
    let (time, isRefused) = (milliseconds(address, kind), refuses(address, kind))
    let wait = isRefused ? 1 : time.map { $0 < 1000 ? $0 : 1000 } ?? 1000
    let timer = loop.schedule(after: .nanoseconds(Int64(wait * 1e6))) { [self] in
      inFlight -= 1
      guard let time, !isRefused, time < 1000 else { return report(.failed) }
      report(.answered(microseconds: UInt32(time * 1000)))
    }
    timers.append(timer)
  }

  func prepare(_ kinds: Set<ProbeKind>) { prepared = kinds }

  func canUse(_ kind: ProbeKind, isIPv6: Bool) -> Bool { !(isPingRefused && kind == .icmp) }

  var problem: String?

  func cancelAll() {
    problem = nil
    for timer in timers { timer.cancel() }
    timers = []
    inFlight = 0
  }
}
