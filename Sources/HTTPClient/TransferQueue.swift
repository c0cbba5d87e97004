// TransferQueue.swift -- transfers that wait for a connection or a stream: round robin over owners, FIFO per owner.
//
// An owner may have up to three times as many transfers in flight as there are free places, so that the next transfer
// of another owner always finds a place. An owner whose transfers all hang takes at most three quarters. Loop thread
// only.

/// The waiting transfers, and the number of transfers in flight per owner.
final class TransferQueue {
  /// The transfers of one fair share.
  fileprivate final class Owner {
    let share: UInt64
    var first: Transfer?
    var last: Transfer?
    /// Transfers that were dequeued and have not ended.
    var begun = 0
    /// Whether it is in the round.
    var isInRound = false

    init(_ share: UInt64) { self.share = share }
  }

  /// A transfer's links in its owner's list.
  struct Link {
    fileprivate var owner: Owner?
    fileprivate var previous: Transfer?
    fileprivate var next: Transfer?
    fileprivate var isWaiting = false
    fileprivate var hasBegun = false

    init() {}
  }

  /// The number of waiting transfers.
  private(set) var count = 0
  private var owners: [UInt64: Owner] = [:]
  /// Owners with waiting transfers, and some whose list has become empty.
  private var round: [Owner] = []
  private var turn = 0

  /// The number of owners and transfers visited, for tests.
  private(set) var steps = 0

  private static let timesFree = 3

  var isEmpty: Bool { count == 0 }

  /// Appends a transfer to its owner's list.
  ///
  /// - Parameter share: identifies the owner; 0 is not limited.
  func append(_ transfer: Transfer, share: UInt64) {
    let owner = owner(of: transfer, share)
    transfer.link.previous = owner.last
    if let last = owner.last { last.link.next = transfer } else { owner.first = transfer }
    owner.last = transfer
  }

  /// Returns a dequeued transfer to the front of its owner's list.
  func takeBack(_ transfer: Transfer) {
    let share = transfer.link.owner?.share ?? 0
    ended(transfer)
    let owner = owner(of: transfer, share)
    transfer.link.next = owner.first
    if let first = owner.first { first.link.previous = transfer } else { owner.last = transfer }
    owner.first = transfer
  }

  /// Removes a waiting transfer. Does nothing if it is not waiting.
  ///
  /// - Complexity: O(1)
  func remove(_ transfer: Transfer) {
    guard transfer.link.isWaiting else { return }
    unlink(transfer)
    forget(transfer)
  }

  /// Dequeues the next transfer that may begin.
  ///
  /// - Parameter free: the number of transfers that may begin, including this one.
  /// - Complexity: O(1), plus the owners at their limit: at most a third of the transfers in flight.
  func next(free: Int) -> Transfer? {
    var left = round.count
    while left > 0, free > 0 {
      left -= 1
      steps += 1
      if turn >= round.count { turn = 0 }
      let owner = round[turn]
      guard let transfer = owner.first else {
        owner.isInRound = false
        let last = round.removeLast()
        if last !== owner { round[turn] = last }
        continue
      }
      turn += 1
      guard owner.share == 0 || owner.begun < TransferQueue.timesFree * free else { continue }
      unlink(transfer)
      owner.begun += 1
      transfer.link.hasBegun = true
      return transfer
    }
    return nil
  }

  /// Records that a dequeued transfer has ended. Does nothing if it was not dequeued.
  func ended(_ transfer: Transfer) {
    guard transfer.link.hasBegun, let owner = transfer.link.owner else { return }
    transfer.link.hasBegun = false
    owner.begun -= 1
    forget(transfer)
  }

  /// Removes and returns all waiting transfers.
  ///
  /// - Complexity: O(n) in the waiting transfers and their owners.
  func takeAll() -> [Transfer] {
    var taken: [Transfer] = []
    taken.reserveCapacity(count)
    for owner in round {
      steps += 1
      owner.isInRound = false
      while let transfer = owner.first {
        steps += 1
        remove(transfer)
        taken.append(transfer)
      }
    }
    round = []
    turn = 0
    return taken
  }

  private func owner(of transfer: Transfer, _ share: UInt64) -> Owner {
    let owner = owners[share] ?? Owner(share)
    owners[share] = owner
    if !owner.isInRound {
      owner.isInRound = true
      round.append(owner)
    }
    transfer.link = Link()
    transfer.link.owner = owner
    transfer.link.isWaiting = true
    count += 1
    return owner
  }

  private func unlink(_ transfer: Transfer) {
    guard let owner = transfer.link.owner else { return }
    let (previous, next) = (transfer.link.previous, transfer.link.next)
    if let previous { previous.link.next = next } else { owner.first = next }
    if let next { next.link.previous = previous } else { owner.last = previous }
    transfer.link.previous = nil
    transfer.link.next = nil
    transfer.link.isWaiting = false
    count -= 1
  }

  private func forget(_ transfer: Transfer) {
    guard let owner = transfer.link.owner else { return }
    transfer.link.owner = nil
    // If the owner is still in the round, its next transfer creates a second object, which gets turns as well.
    if owner.first == nil, owner.begun == 0 { owners[owner.share] = nil }
  }
}
