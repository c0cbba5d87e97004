// AddressFigures.swift -- what ranking knows of an address, for output.

import DNSWire
import EventLoop
import Ranking

/// What is known of one address of an answer.
package struct AddressFigures: Hashable, Sendable {
  /// The figure of one kind of probe.
  package struct Probe: Hashable, Sendable {
    /// `icmp` or `tcp:PORT`.
    package var kind: String
    /// The smoothed round trip; nil if it has never answered.
    package var roundTrip: Duration?
    /// Failures in a row.
    package var failures: Int
    /// How long ago it was measured.
    package var age: Duration

    /// Creates a figure.
    package init(kind: String, roundTrip: Duration?, failures: Int, age: Duration) {
      self.kind = kind
      self.roundTrip = roundTrip
      self.failures = failures
      self.age = age
    }
  }

  /// The address.
  package var address: IPAddress
  /// By kind, in order of preference.
  package var probes: [Probe]
  /// How long it is last because programs reported it; nil if it is not.
  package var badFor: Duration?
  /// Failures that programs reported within the last minute.
  package var reportedFailures: Int
  /// The round trip of the last success that a program reported, in milliseconds.
  package var reportedMilliseconds: Int?

  /// Creates the figures of an address.
  package init(
    address: IPAddress, probes: [Probe] = [], badFor: Duration? = nil, reportedFailures: Int = 0,
    reportedMilliseconds: Int? = nil
  ) {
    self.address = address
    self.probes = probes
    self.badFor = badFor
    self.reportedFailures = reportedFailures
    self.reportedMilliseconds = reportedMilliseconds
  }
}

extension Ranker {
  /// What is known of addresses of a name on this network; those of which nothing is known are left out.
  func figures(of addresses: [IPAddress], of name: DomainName) -> [AddressFigures] {
    let now = loop.now.nanoseconds
    let kinds = kinds(for: name)
    return addresses.compactMap { address in
      let probes = kinds.compactMap { kind in
        known(address, kind).map {
          AddressFigures.Probe(
            kind: "\(kind)", roundTrip: $0.microseconds.map { .microseconds(Int64($0)) }, failures: $0.failures,
            age: .nanoseconds(now - $0.measuredAt))
        }
      }
      let reported = reports.reports(about: address, of: name, now: now)
      guard !probes.isEmpty || reported != nil else { return nil }
      return AddressFigures(
        address: address, probes: probes, badFor: reported?.badUntil.map { .nanoseconds($0 - now) },
        reportedFailures: reported?.failures ?? 0, reportedMilliseconds: reported?.milliseconds)
    }
  }
}
