// FleetUnitCounts.swift -- billing units, which all daemons of a fleet add up in the store.

import EventLoop
import Files
import Fleet
import Store

extension FleetLevel {
  /// The days before a new one whose counters are deleted; machines may differ in what day it is.
  private static let oldDays = 2...8 as ClosedRange<Int64>

  /// Notes what this daemon has spent on a day, and tells the others.
  ///
  /// - Parameters:
  ///   - account: stands for the provider's account.
  ///   - own: this daemon's units on the day.
  ///   - day: days since 1970.
  package func spent(own: Int, day: Int64, of account: String) {
    loop.assertCurrent()
    guard settings.sharesUnits else { return }
    change(account) { $0.update(own: own, day: day) }
    report(account)
  }

  /// The site's units on the day beyond this daemon's own; 0 if they are not known.
  package func othersUnits(own: Int, day: Int64, of account: String) -> Int {
    guard settings.sharesUnits, let units = units[account], units.day == day else { return 0 }
    return max(0, units.spent - own)
  }

  /// Reads what the fleet has spent, in front of a look: its reply comes first, so that what others have reported until then
  /// counts before this daemon spends more. Nobody waits for it.
  func readUnits() {
    for account in limitedAccounts where accountsBeingRead.insert(account).inserted {
      // The day may have turned since this daemon has spent something.
      let day = max(units[account]?.day ?? 0, loop.wallTime / 86_400)
      link.post([FleetLevel.get, keys.units(account, day: day)]) { [weak self] result in
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

  /// Adds what this daemon has spent since its last report; one addition at a time.
  private func report(_ account: String) {
    guard link.isUp, link.mayWrite else { return }
    askEpoch()
    add(account)
  }

  private func add(_ account: String) {
    // If the store has lost everything, the whole count has to be added.
    guard link.isUp, link.mayWrite, isEpochKnown, let increment = units[account]?.next() else { return }
    let key = keys.units(account, day: increment.day)
    link.post([Array("INCRBY".utf8), key, Array("\(increment.units)".utf8)]) { [weak self] result in
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

  /// The first one of a day deletes the counters of the days before: they carry no expiry, since a store that is full would
  /// evict them.
  private func deleteOldDays(of account: String, before day: Int64) {
    guard !clock.isOff else { return }
    let old = FleetLevel.oldDays.map { keys.units(account, day: day - $0) }
    link.post([FleetLevel.delete] + old, nil)
  }

  /// Finds out whether the store has lost its data, and marks it otherwise.
  func askEpoch() {
    guard link.isUp else { return }
    link.post([FleetLevel.set, keys.epoch, identity + Array("\(loop.now.nanoseconds)".utf8), FleetLevel.ifAbsent], nil)
    link.post([FleetLevel.get, keys.epoch]) { [weak self] result in
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

  /// The store is another one than before, or has lost its data.
  private func lost() {
    counters.losses += 1
    for (account, known) in units {
      let counted = ledger.units(of: account)
      units[account]?.storeLostData(counted: counted.day == known.day ? counted.counted : 0)
    }
    lastFlush = FleetLevel.firstEntry
    // Its list of daemons is another one too.
    heartbeatAt = nil
    sign()
    (backlogCount, backlogBegin) = (0, nil)
    // Otherwise the stream begins again with the next connection.
    if link.isUp { onLoss?() }
  }
}
