// Heat.swift -- decides which names are refreshed without a client's query, and when that stops.

/// The refresh history of an entry, passed on to the entry that replaces it.
public struct Heat: Hashable, Sendable {
  /// 0 for an entry that a client's query brought; otherwise 1 plus the number of fruitless refreshes in a row before
  /// the one that brought this entry. Four octets hold every `giveUpAfter`.
  public let rawValue: UInt32

  /// The heat of an entry that a client's query brought.
  public static let inactive = Heat(rawValue: 0)

  /// Whether a refresh brought this entry.
  public var isActive: Bool { rawValue > 0 }

  /// Restores the heat of a stored entry; every value is valid.
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  static func active(fruitless: UInt32) -> Heat { Heat(rawValue: fruitless + 1) }
}

/// The decision about an entry at its due time.
public enum RefreshDecision: Hashable, Sendable {
  /// Fetch it again and store this heat in the new entry.
  case refresh(next: Heat)
  /// Let it expire: the next client that asks waits for a provider.
  case letExpire
}

/// Which entries are worth a transfer.
public struct HeatPolicy: Hashable, Sendable {
  /// Hits that make an entry hot; with 0, no entry becomes hot.
  public let hotHits: UInt32
  /// How many refreshes in a row without a hit are spent on a name.
  public let giveUpAfter: UInt32

  /// - Precondition: `hotHits` is not negative, `giveUpAfter` is 1 or more, and both are below 2³¹.
  public init(hotHits: Int, giveUpAfter: Int) {
    precondition((0...Int(Int32.max)).contains(hotHits) && (1...Int(Int32.max)).contains(giveUpAfter))
    self.hotHits = UInt32(hotHits)
    self.giveUpAfter = UInt32(giveUpAfter)
  }

  /// Decides about an entry at its due time.
  ///
  /// An inactive entry is refreshed if it is hot. From then on its name is refreshed until `giveUpAfter` refreshes in a
  /// row had no hit before the next due time: with 3, a name gets three transfers after the entry with its last hit.
  /// One hit resets the count.
  ///
  /// A pure function: after a failed refresh the same arguments give the same decision.
  ///
  /// - Parameters:
  ///   - hits: how many queries this entry has answered since it was stored.
  ///   - heat: the heat of this entry.
  ///   - isOnKeepList: whether the name is in `refresh.keep`; such a name is always refreshed.
  public func decide(hits: UInt32, heat: Heat, isOnKeepList: Bool) -> RefreshDecision {
    if isOnKeepList { return .refresh(next: .inactive) }
    guard heat.isActive else {
      return hotHits > 0 && hits >= hotHits ? .refresh(next: .active(fruitless: 0)) : .letExpire
    }
    // Without a hit, the refresh that brought this entry was fruitless too.
    let fruitless = hits > 0 ? 0 : heat.rawValue
    return fruitless >= giveUpAfter ? .letExpire : .refresh(next: .active(fruitless: fruitless))
  }

  /// Returns how many more hits an entry needs to be refreshed; 0 if it needs none.
  ///
  /// - Precondition: `hotHits` is not 0: no number of hits would suffice.
  public func missingHits(hits: UInt32, heat: Heat) -> UInt32 {
    if decide(hits: hits, heat: heat, isOnKeepList: false) != .letExpire { return 0 }
    return heat.isActive ? 1 : hotHits - min(hits, hotHits)
  }
}
