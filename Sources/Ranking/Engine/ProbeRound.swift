// ProbeRound.swift -- the measurement of one answer's addresses.

import DNSWire

/// A round: each address is measured by the first kind of probe, and by the next kind if that fails.
final class ProbeRound {
  let hash: UInt64
  let name: DomainName
  let isIPv6: Bool
  let kinds: [ProbeKind]
  /// Hits since the last measurement. Probes of the most used names begin first.
  let uses: UInt32
  /// The client and the domain that its probes are charged to.
  let shares: [UInt64]
  /// Addresses without a result, plus one for a canary that the round waits for.
  var left = 0
  /// Whether the next round follows soon: an address has failed once, or TCP measurements are now ignored.
  var hasDoubt = false

  init(_ hash: UInt64, _ name: DomainName, isIPv6: Bool, _ kinds: [ProbeKind], uses: UInt32, shares: [UInt64]) {
    self.hash = hash
    self.name = name
    self.isIPv6 = isIPv6
    self.kinds = kinds
    self.uses = uses
    self.shares = shares
  }
}

/// One address of a round.
final class ProbeJob {
  let round: ProbeRound
  let address: IPAddress
  /// The index of the current kind.
  var rank = 0
  /// The first of the two samples of a first measurement, in microseconds.
  var firstSample: UInt32?
  /// Whether a failed probe of this kind was repeated. The repetition shows whether only one packet was lost.
  var isRepeated = false
  /// Whether it is counted as deferred. Each job counts once.
  var isDeferred = false

  init(_ address: IPAddress, in round: ProbeRound) {
    self.address = address
    self.round = round
  }

  var kind: ProbeKind { round.kinds[rank] }

  /// Continues with the next kind, whose first measurement again takes two samples.
  func tryNextKind() {
    rank += 1
    (firstSample, isRepeated) = (nil, false)
  }
}
