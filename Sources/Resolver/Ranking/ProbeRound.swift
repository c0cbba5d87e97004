// ProbeRound.swift -- the measurement of one answer's addresses.

import DNSWire
import Ranking

/// A round: each address by the first kind, and by the next one if that fails.
final class ProbeRound {
  let hash: UInt64
  let name: DomainName
  let isIPv6: Bool
  let kinds: [ProbeKind]
  /// Hits of the answer when the round began: the most used names come first.
  let uses: UInt32
  /// The client and the domain that it is for.
  let shares: [UInt64]
  /// Addresses that are not done, and the canary if its outcome matters.
  var left = 0
  /// Whether an address that worked has failed once, so that it is measured again soon.
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
  /// The index of the kind that is tried.
  var rank = 0
  /// The first of the two samples of a first measurement, in microseconds.
  var firstSample: UInt32?
  /// Whether a probe of this kind that would make the address failing was repeated, since a single one may be lost.
  var isRepeated = false
  /// Whether it was put off because the budget is spent.
  var isDeferred = false

  init(_ address: IPAddress, in round: ProbeRound) {
    self.address = address
    self.round = round
  }

  var kind: ProbeKind { round.kinds[rank] }

  /// Goes on to the next kind, whose first measurement is two samples as well.
  func tryNextKind() {
    rank += 1
    (firstSample, isRepeated) = (nil, false)
  }
}
