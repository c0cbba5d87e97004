// BilledRequest.swift -- a request that costs units each time it is put on the wire.
//
// Resolver's loop only.

import FairShares
import HTTPClient

/// Reserves units for a request while it is in flight, and for each time that the HTTP client sends it once more.
final class BilledRequest: TransferOwner, QuestionCarrier {
  private let question: any QuestionInFlight
  private let limits: ProviderLimits
  /// The most that the request costs each time.
  private let units: Int
  private var reserved = 0
  /// Nil before and after.
  private var transfer: (any CarriedTransfer)?
  private var hasWaitedInVain = false

  init(_ question: any QuestionInFlight, within limits: ProviderLimits, units: Int) {
    (self.question, self.limits, self.units) = (question, limits, units)
    reserve()
  }

  /// It has ended, and what it cost is paid by the caller.
  func end() {
    limits.release(reserved)
    question.wasCarried(by: self)
  }

  var clientShare: UInt64 { question.clientShare }
  var domainShare: UInt64 { question.domainShare }
  func gotConnection() { question.gotConnection() }

  func isCarried(by transfer: (any CarriedTransfer)?) {
    hasWaitedInVain = self.transfer?.isQueued ?? false
    self.transfer = transfer
    if transfer != nil { question.isCarried(by: self) }
  }

  /// At its end, whether it waited until then.
  var isQueued: Bool { transfer?.isQueued ?? hasWaitedInVain }
  func isJoined(by client: ClientKey) { transfer?.isJoined(by: client.value) }
  func isLate() { transfer?.isLate() }

  /// A repeat counts as a request of its own.
  func mayRepeat() -> Bool {
    guard limits.mayRepeat() else { return false }
    reserve()
    return true
  }

  private func reserve() {
    reserved += units
    limits.reserve(units)
  }
}
