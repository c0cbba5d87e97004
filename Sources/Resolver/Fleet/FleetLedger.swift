// FleetLedger.swift -- stores what the store has counted of this daemon's units, so that neither a restart nor a reload adds
// them to the fleet's again.
//
// Resolver's loop only. The file has lines of text: this daemon's name among the members, the epoch of the store, both in
// hexadecimal, then one line per account: the account, the day in days since 1970, the units.

import Ciphers
import DNSWire
import EventLoop
import Fleet
import Persistence
import Upstreams

/// Units that a store has counted, in the state directory.
package final class FleetLedger {
  private let shared = Shared()
  private let writer: StateWriter?

  private final class Shared {
    var member = RandomOctets.generate(count: 16)
    var epoch: [UInt8] = []
    var counted: [String: (day: Int64, units: Int)] = [:]
  }

  /// The longest epoch that is stored, in octets: a daemon makes one of some 40.
  static let longestEpoch = 128

  private static let delay = Duration.seconds(10)
  private static let largest = 64 * 1024
  private static let firstLine = "httpdnsd fleet 1"
  /// Days since 1970 until the year 9999.
  private static let lastDay: Int64 = 2_932_896

  /// Creates a ledger that forgets with the process.
  package init() { writer = nil }

  /// Reads the stored units. A line that is unreadable, and those after it, are skipped.
  package init(_ file: StateFile, on loop: any Loop) {
    writer = StateWriter(file, on: loop, after: FleetLedger.delay) { [shared] in FleetLedger.content(shared) }
    FleetLedger.read(file.read(limit: FleetLedger.largest) ?? [], into: shared)
  }

  /// This daemon among the members of a fleet, also after a restart: 16 octets in hexadecimal.
  package var member: String { Hexadecimal.encode(shared.member) }

  /// What marks the store's data; nil if this daemon has not used a store yet.
  var epoch: [UInt8]? { shared.epoch.isEmpty ? nil : shared.epoch }

  /// What the store has counted of an account.
  func units(of account: String) -> FleetUnits {
    shared.counted[account].map { FleetUnits(counted: $0.units, day: $0.day) } ?? FleetUnits()
  }

  /// Notes what it has counted.
  func note(_ units: Int, day: Int64, of account: String) {
    shared.counted[account] = (day, units)
    writer?.changed()
  }

  /// The store is another one, or has lost its data: it has counted nothing.
  func begin(_ epoch: [UInt8]) {
    (shared.epoch, shared.counted) = (epoch, [:])
    writer?.changed()
  }

  /// Writes unsaved changes before it returns.
  package func close() { writer?.close() }

  private static func content(_ shared: Shared) -> [UInt8] {
    var lines = [firstLine, "member \(Hexadecimal.encode(shared.member))", "epoch \(Hexadecimal.encode(shared.epoch))"]
    for (account, entry) in shared.counted.sorted(by: { $0.key < $1.key }) {
      lines.append("\(account) \(entry.day) \(entry.units)")
    }
    return Array(lines.map { "\($0)\n" }.joined().utf8)
  }

  private static func read(_ octets: [UInt8], into shared: Shared) {
    let lines = String(decoding: octets, as: UTF8.self).split(separator: "\n")
    guard lines.count >= 3, lines[0] == firstLine, let member = value(of: "member ", in: lines[1]), member.count == 16,
      let epoch = value(of: "epoch ", in: lines[2])
    else { return }
    (shared.member, shared.epoch) = (member, epoch)
    for line in lines.dropFirst(3) {
      let fields = line.split(separator: " ")
      guard fields.count == 3, let day = Int64(fields[1]), let units = Int(fields[2]),
        (0...lastDay).contains(day),
        (0...UnitBudget.mostUnits).contains(units)
      else { return }
      shared.counted[String(fields[0])] = (day, units)
    }
  }

  private static func value(of prefix: String, in line: Substring) -> [UInt8]? {
    line.hasPrefix(prefix) ? Hexadecimal.decode(line.dropFirst(prefix.count).utf8) : nil
  }
}
