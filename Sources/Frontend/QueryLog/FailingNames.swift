// FailingNames.swift -- names whose clients got SERVFAIL, how often and why, for `httpdnsd top`. Resolver's loop only.

import DNSWire
import EventLoop

/// A name and type whose clients got SERVFAIL.
package struct FailingName: Sendable, Equatable {
  /// The name, in lower case.
  package var name: DomainName
  /// QTYPE.
  package var type: RecordType
  /// SERVFAIL responses since it entered the list.
  package var count: UInt64
  /// The reason for the last one.
  package var reason: String
  /// Time since the last one.
  package var age: Duration
}

/// The names that failed most recently. Costs nothing while no name fails.
package final class FailingNames {
  private struct Key: Hashable {
    var name: DomainName
    var type: UInt16
  }

  private struct Row {
    var count: UInt64 = 0
    var reason = ""
    var at = BootInstant(nanoseconds: 0)
  }

  /// The most names and types; beyond that, the half that failed longest ago is removed.
  static let most = 512

  private var rows: [Key: Row] = [:]

  package init() {}

  /// Counts a SERVFAIL response.
  func failed(_ name: DomainName, type: UInt16, reason: String, now: BootInstant) {
    let key = Key(name: name.lowercased, type: type)
    if rows.count >= FailingNames.most, rows[key] == nil { makeRoom() }
    rows[key, default: Row()].count += 1
    rows[key]?.reason = reason
    rows[key]?.at = now
  }

  /// The names, most recent failure first.
  package func report(now: BootInstant) -> [FailingName] {
    rows.sorted { $0.value.at > $1.value.at }.map { key, row in
      FailingName(name: key.name, type: RecordType(key.type), count: row.count, reason: row.reason, age: now - row.at)
    }
  }

  private func makeRoom() {
    let newest = rows.sorted { $0.value.at > $1.value.at }.prefix(FailingNames.most / 2)
    rows = Dictionary(uniqueKeysWithValues: newest.map { ($0.key, $0.value) })
  }
}
