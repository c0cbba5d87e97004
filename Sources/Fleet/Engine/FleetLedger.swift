// FleetLedger.swift -- saves how many of this daemon's units the store has counted, so that neither a restart nor a
// reload adds them again.
//
// Resolver's loop only. The file is text. After the header come this daemon's identifier and, for each store, the
// current one first, its epoch and one line per account:
//
//   member HEX
//   epoch HEX
//   ACCOUNT DAY OWN TOTAL      DAY in days since 1970; this daemon's units; the fleet's units by the last reply

import Ciphers
import DNSWire
import EventLoop
import Files
import Persistence

/// The file `fleet` in the state directory.
package final class FleetLedger {
  private let shared = Shared()
  private let writer: StateWriter?

  private final class Shared {
    /// Whether totals have changed since the last write. That alone does not schedule a write.
    var isAhead = false
    var member = RandomOctets.generate(count: 16)
    /// The current store first.
    var stores: [Store] = []
  }

  private struct Store {
    /// Identifies the store's data (`FleetKeys.epoch`).
    var epoch: [UInt8]
    var counted: [String: FleetUnits] = [:]
  }

  /// The longest valid epoch in octets; daemons write about 40.
  static let longestEpoch = 128

  /// Stores in the file: a daemon may be moved to another store and back.
  private static let mostStores = 4
  private static let delay = Duration.seconds(10)
  private static let largest = 64 * 1024
  private static let firstLine = "httpdnsd fleet 1"

  /// Creates a ledger without a file.
  package init() { writer = nil }

  /// Reads the file. The first malformed line and all lines after it are ignored.
  package init(_ file: StateFile, on loop: any Loop) {
    writer = StateWriter(file, on: loop, after: FleetLedger.delay) { [shared] in FleetLedger.content(shared) }
    FleetLedger.read(file.read(limit: FleetLedger.largest) ?? [], into: shared)
  }

  /// Identifies this daemon in the list of daemons, also after a restart: 16 octets in hexadecimal.
  package var member: String { Hexadecimal.encode(shared.member) }

  /// The epoch of the current store; nil if this daemon has not used a store yet.
  var epoch: [UInt8]? { shared.stores.first?.epoch }

  /// What the current store has counted of an account.
  func units(of account: String) -> FleetUnits {
    shared.stores.first?.counted[account] ?? FleetUnits()
  }

  /// Records what the current store has counted, and schedules a write.
  func record(_ units: FleetUnits, of account: String) {
    recordTotal(units, of: account)
    writer?.changed()
  }

  /// Records what the current store has counted, without scheduling a write: only the fleet's total has changed, which
  /// happens at each lookup.
  func recordTotal(_ units: FleetUnits, of account: String) {
    guard !shared.stores.isEmpty else { return }
    shared.isAhead = true
    shared.stores[0].counted[account] = FleetUnits(counted: units.counted, day: units.day, total: units.total)
  }

  /// Makes the store with this epoch the current one. An unknown epoch has counted nothing: the store is new, or has
  /// lost its data.
  func switchStore(to epoch: [UInt8]) {
    let known = shared.stores.firstIndex { $0.epoch == epoch }.map { shared.stores.remove(at: $0) }
    shared.stores.insert(known ?? Store(epoch: epoch), at: 0)
    shared.stores = Array(shared.stores.prefix(FleetLedger.mostStores))
    writer?.changed()
  }

  /// Writes unsaved changes before it returns.
  package func close() {
    if shared.isAhead { writer?.changed() }
    writer?.close()
  }

  private static func content(_ shared: Shared) -> [UInt8] {
    shared.isAhead = false
    var lines = [firstLine, "member \(Hexadecimal.encode(shared.member))"]
    for store in shared.stores {
      lines.append("epoch \(Hexadecimal.encode(store.epoch))")
      for (account, count) in store.counted.sorted(by: { $0.key < $1.key }) {
        lines.append("\(account) \(count.day) \(count.own) \(count.total)")
      }
    }
    return Array(lines.map { "\($0)\n" }.joined().utf8)
  }

  private static func read(_ octets: [UInt8], into shared: Shared) {
    let lines = String(decoding: octets, as: UTF8.self).split(separator: "\n")
    guard lines.count >= 2, lines[0] == firstLine, let member = value(of: "member ", in: lines[1]), member.count == 16
    else { return }
    shared.member = member
    for line in lines.dropFirst(2) {
      if let epoch = value(of: "epoch ", in: line), !epoch.isEmpty {
        guard shared.stores.count < mostStores else { return }
        shared.stores.append(Store(epoch: epoch))
        continue
      }
      let fields = line.split(separator: " ")
      guard let last = shared.stores.indices.last, fields.count == 4,
        let day = fields[1].number(in: NumberRange.days), let units = fields[2].number(in: NumberRange.units),
        let total = fields[3].number(in: NumberRange.units)
      else { return }
      shared.stores[last].counted[String(fields[0])] = FleetUnits(counted: units, day: day, total: total)
    }
  }

  private static func value(of prefix: String, in line: Substring) -> [UInt8]? {
    line.hasPrefix(prefix) ? Hexadecimal.decode(line.dropFirst(prefix.count).utf8) : nil
  }
}
