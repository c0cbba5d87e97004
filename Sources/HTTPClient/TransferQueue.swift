// TransferQueue.swift -- transfers that wait for a connection or a stream: owners in turn, each owner's in order.
//
// An owner may have three times as many in flight as are free, so that somebody else's next one always finds a place: one
// whose transfers all hang has three quarters at most. Loop thread only.

/// Transfers that wait, and how many each owner has in flight.
final class TransferQueue {
  /// Whose transfers share what there is.
  fileprivate final class Owner {
    let share: UInt64
    var first: Transfer?
    var last: Transfer?
    /// Transfers that were taken and have not ended.
    var begun = 0
    /// Whether it has a place in the round.
    var isInRound = false

    init(_ share: UInt64) { self.share = share }
  }

  /// A transfer's place in its owner's list.
  struct Link {
    fileprivate var owner: Owner?
    fileprivate var previous: Transfer?
    fileprivate var next: Transfer?
    fileprivate var isWaiting = false
    fileprivate var hasBegun = false

    init() {}
  }

  /// How many wait.
  private(set) var count = 0
  private var owners: [UInt64: Owner] = [:]
  /// Those with something that waits, and some that had it a moment ago.
  private var round: [Owner] = []
  private var turn = 0

  /// Owners that were looked at so far, for tests.
  private(set) var steps = 0

  private static let timesFree = 3

  var isEmpty: Bool { count == 0 }

  /// A transfer waits behind those of the same owner.
  ///
  /// - Parameter share: whose it is; 0 for nobody's, which has no bound.
  func append(_ transfer: Transfer, share: UInt64) {
    let owner = owner(of: transfer, share)
    transfer.link.previous = owner.last
    if let last = owner.last { last.link.next = transfer } else { owner.first = transfer }
    owner.last = transfer
  }

  /// A transfer that was taken waits again, before all others of its owner.
  func takeBack(_ transfer: Transfer) {
    let share = transfer.link.owner?.share ?? 0
    ended(transfer)
    let owner = owner(of: transfer, share)
    transfer.link.next = owner.first
    if let first = owner.first { first.link.previous = transfer } else { owner.last = transfer }
    owner.first = transfer
  }

  /// A transfer that waits does so no more; nothing where it does not wait.
  ///
  /// - Complexity: O(1)
  func remove(_ transfer: Transfer) {
    guard transfer.link.isWaiting else { return }
    unlink(transfer)
    forget(transfer)
  }

  /// Takes the next one that may begin.
  ///
  /// - Parameter free: how many may begin, this one among them.
  /// - Complexity: O(1), beside those who have too much: a third of all that are in flight at most.
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

  /// A transfer that was taken has ended.
  func ended(_ transfer: Transfer) {
    guard transfer.link.hasBegun, let owner = transfer.link.owner else { return }
    transfer.link.hasBegun = false
    owner.begun -= 1
    forget(transfer)
  }

  /// Takes all of them out: nobody waits any more.
  ///
  /// - Complexity: O(n) in those that wait and their owners.
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
    // Where it is in the round still, the next one of that owner finds another object, which takes its turn as well.
    if owner.first == nil, owner.begun == 0 { owners[owner.share] = nil }
  }
}
