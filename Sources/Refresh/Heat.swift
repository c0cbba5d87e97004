// Heat.swift -- which names are fetched again without being asked for, and when that ends.

/// What an entry remembers from one refresh to the next.
public struct Heat: Hashable, Sendable {
  /// 0 for an entry that came by a client's question, else one more than the fruitless refreshes before the one that
  /// brought this entry. Four octets hold every `giveUpAfter`.
  public let rawValue: UInt32

  /// An entry that came by a client's question.
  public static let inactive = Heat(rawValue: 0)

  /// Whether a refresh brought this entry.
  public var isActive: Bool { rawValue > 0 }

  /// What was remembered.
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  static func active(fruitless: UInt32) -> Heat { Heat(rawValue: fruitless + 1) }
}

/// What becomes of an entry at its due time.
public enum RefreshDecision: Hashable, Sendable {
  /// It is fetched again, and the new entry remembers this.
  case refresh(next: Heat)
  /// Nobody needs it: the next client that asks will wait.
  case letExpire
}

/// Which entries are worth a transfer.
public struct HeatPolicy: Hashable, Sendable {
  /// Hits that make an entry hot; 0 where no entry becomes hot.
  public let hotHits: UInt32
  /// Refreshes in a row without a hit that may be spent on a name.
  public let giveUpAfter: UInt32

  /// The policy of a configuration.
  ///
  /// - Precondition: `hotHits` is not negative, `giveUpAfter` is 1 or more, and both are below 2³¹.
  public init(hotHits: Int, giveUpAfter: Int) {
    precondition((0...Int(Int32.max)).contains(hotHits) && (1...Int(Int32.max)).contains(giveUpAfter))
    self.hotHits = UInt32(hotHits)
    self.giveUpAfter = UInt32(giveUpAfter)
  }

  /// What becomes of an entry at its due time.
  ///
  /// An entry that is not active is refreshed when it is hot. From then on its name is refreshed until `giveUpAfter`
  /// refreshes in a row had no hit between them and the next due time: with 3, three transfers are spent on a name after
  /// its last hit was answered by an entry. One hit starts it again.
  ///
  /// The entry itself does not change: after a failed refresh the same question has the same answer.
  ///
  /// - Parameters:
  ///   - hits: how often this entry has answered since it was stored.
  ///   - heat: what it remembers.
  ///   - isKept: whether its name is always kept fresh.
  public func decide(hits: UInt32, heat: Heat, isKept: Bool) -> RefreshDecision {
    if isKept { return .refresh(next: .inactive) }
    guard heat.isActive else {
      return hotHits > 0 && hits >= hotHits ? .refresh(next: .active(fruitless: 0)) : .letExpire
    }
    // The refresh that brought this entry is one more that was fruitless, unless there was a hit.
    let fruitless = hits > 0 ? 0 : heat.rawValue
    return fruitless >= giveUpAfter ? .letExpire : .refresh(next: .active(fruitless: fruitless))
  }

  /// How many more hits an entry needs to be refreshed; 0 where it is as it stands.
  ///
  /// - Precondition: `hotHits` is not 0: otherwise no number of hits would do.
  public func missingHits(hits: UInt32, heat: Heat) -> UInt32 {
    if decide(hits: hits, heat: heat, isKept: false) != .letExpire { return 0 }
    return heat.isActive ? 1 : hotHits - min(hits, hotHits)
  }
}
