// AddressFigures.swift -- the measurements and reports of an address, for output.

import DNSWire
import EventLoop

/// The measurements and reports of one address of an answer.
package struct AddressFigures: Hashable, Sendable {
  /// The measurement by one kind of probe.
  package struct Probe: Hashable, Sendable {
    /// `icmp` or `tcp:PORT`.
    package var kind: String
    /// The smoothed round trip; nil if the address has not answered.
    package var roundTrip: Duration?
    /// Failures in a row.
    package var failures: Int
    /// The time since the last measurement.
    package var age: Duration
  }

  package var address: IPAddress
  /// One for each kind with a measurement, in order of preference.
  package var probes: [Probe] = []
  /// How much longer reports keep the address last; nil if they do not.
  package var badFor: Duration?
  /// Failures that programs reported within the last minute.
  package var reportedFailures = 0
  /// The last round trip that a program reported, in milliseconds.
  package var reportedMilliseconds: Int?
}

extension Ranker {
  /// The figures of a name's addresses on the current network. Addresses without measurements and reports are left out.
  package func figures(of addresses: [IPAddress], of name: DomainName) -> [AddressFigures] {
    let now = loop.now.nanoseconds
    let kinds = kinds(for: name)
    return addresses.compactMap { address in
      let probes = kinds.compactMap { kind in
        rounds.known(address, kind).map {
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
