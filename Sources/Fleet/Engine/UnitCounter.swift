// UnitCounter.swift -- counts billing units in the store, summed over all daemons of the fleet.
//
// Resolver's loop only. `FleetUnits` does the arithmetic, `FleetLedger` saves the counts.

import EventLoop
import Files
import Store

/// The units of each account, and the store's epoch, which shows a loss of its data.
package final class UnitCounter {
  private let loop: any Loop
  private let link: any StoreLink
  private let clock: StoreClockSync
  private let keys: FleetKeys
  private let identity: [UInt8]
  /// Whether `units_per_day` limits the fleet rather than each daemon.
  private let isShared: Bool
  /// How many of this daemon's units the store has counted, across restarts.
  private let ledger: FleetLedger
  private var units: [String: FleetUnits] = [:]
  /// The accounts whose counter is being read.
  private var accountsBeingRead: Set<String> = []
  /// Whether the store's epoch was read over this connection.
  private var isEpochKnown = false
  /// The accounts with `units_per_day`, as the configuration has them.
  package var limitedAccounts: Set<String> = []
  /// Called when the store was replaced or has lost its data.
  var onLoss: (() -> Void)?

  /// The ages in days of the counters that are deleted on a new day. Yesterday's is not: machines may disagree about the
  /// date.
  private static let oldDays = 2...8 as ClosedRange<Int64>

  init(
    _ keys: FleetKeys, isShared: Bool, over link: any StoreLink, on loop: any Loop, clock: StoreClockSync,
    identity: [UInt8], ledger: FleetLedger
  ) {
    (self.keys, self.isShared) = (keys, isShared)
    (self.link, self.loop, self.clock, self.identity, self.ledger) = (link, loop, clock, identity, ledger)
  }

  /// Records what this daemon has spent on a day, and adds it to the fleet's counter.
  ///
  /// - Parameters:
  ///   - own: this daemon's units on the day.
  ///   - day: days since 1970.
  ///   - account: identifies the provider's account.
  package func spent(own: Int, day: Int64, of account: String) {
    loop.assertCurrent()
    guard isShared else { return }
    change(account) { $0.update(own: own, day: day) }
    guard link.isUp, link.mayWrite else { return }
    // Notice a loss of data before the increment.
    askEpoch()
    add(account)
  }

  /// The units that the fleet's other daemons have spent on the day; 0 if unknown.
  package func othersUnits(own: Int, day: Int64, of account: String) -> Int {
    guard isShared, let units = units[account], units.day == day else { return 0 }
    return max(0, units.spent - own)
  }

  /// The connection is up; also reports the units that were spent while the store was down.
  func connected() {
    isEpochKnown = false
    askEpoch()
  }

  /// Requests the fleet's totals of accounts with a limit; does not wait. Call this before a lookup: the replies then
  /// arrive before the lookup's, so that units which other daemons have reported count before this daemon spends more.
  func readTotals() {
    for account in limitedAccounts where accountsBeingRead.insert(account).inserted {
      // `units` may still be of an earlier day.
      let day = max(units[account]?.day ?? 0, loop.wallTime / 86_400)
      link.post(StoreCommand.get.words(keys.units(account, day: day))) { [weak self] result in
        self?.accountsBeingRead.remove(account)
        guard case .success(.bulk(let octets)) = result,
          let total = String(decoding: octets, as: UTF8.self).number(in: NumberRange.units)
        else { return }
        self?.change(account) { $0.received(total: total, day: day) }
        guard let self, isEpochKnown, let units = units[account] else { return }
        ledger.recordTotal(units, of: account)
      }
    }
  }

  private func change(_ account: String, _ change: (inout FleetUnits) -> Void) {
    change(&units[account, default: ledger.units(of: account)])
  }

  /// Sends the next increment of an account; one at a time.
  private func add(_ account: String) {
    // The increment depends on the epoch: after a loss the whole count of the day has to be added.
    guard link.isUp, link.mayWrite, isEpochKnown, let increment = units[account]?.next() else { return }
    let key = keys.units(account, day: increment.day)
    link.post(StoreCommand.incrby.words(key, "\(increment.units)".utf8)) { [weak self] result in
      guard let self else { return }
      guard case .success(.integer(let total)) = result else {
        units[account]?.failed(increment)
        return
      }
      units[account]?.counted(increment, total: Int(clamping: total))
      if let units = units[account] { ledger.record(units, of: account) }
      if total == Int64(increment.units) { deleteOldDays(of: account, before: increment.day) }
      add(account)
    }
  }

  /// Deletes old counters; called by the daemon that creates the counter of a new day. Counters have no expiry, since a
  /// full store evicts keys that have one (`volatile-lru`).
  private func deleteOldDays(of account: String, before day: Int64) {
    guard !clock.isOff else { return }
    let old = UnitCounter.oldDays.map { keys.units(account, day: day - $0) }
    link.post(StoreCommand.del.words() + old, nil)
  }

  /// Writes an epoch if the store has none, then reads it: another epoch than the last known one means that the store
  /// was replaced or has lost its data.
  private func askEpoch() {
    guard link.isUp else { return }
    link.post(StoreCommand.set.words(keys.epoch, identity + Array("\(loop.now.nanoseconds)".utf8), "NX".utf8), nil)
    link.post(StoreCommand.get.words(keys.epoch)) { [weak self] result in
      guard let self, case .success(.bulk(let found)) = result, found.count <= FleetLedger.longestEpoch else { return }
      let known = ledger.epoch
      if known != found {
        ledger.switchStore(to: found)
        if known != nil { lost() }
      }
      guard !isEpochKnown || known != found else { return }
      isEpochKnown = true
      for account in units.keys { add(account) }
    }
  }

  private func lost() {
    for (account, known) in units {
      let counted = ledger.units(of: account)
      units[account]?.storeLostData(counted: counted.day == known.day ? counted.counted : 0)
    }
    onLoss?()
  }
}
