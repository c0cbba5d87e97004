// AddressOrder.swift -- orders the addresses of an answer: the band, the unknown, the slower, the failing.
//
// The band is the fastest address and those about as fast; they take turns at the front. An address joins the band
// within a narrow limit and leaves it at a wider one, so that small changes of round trips do not reorder the answer.

/// The measurements and reports of one address of an answer.
public struct AddressStanding: Hashable, Sendable {
  /// What the probes found.
  public enum Condition: Hashable, Sendable {
    /// The address has no valid measurement.
    case unknown
    /// It answers probes of the kind with this rank (0 is the preferred kind), after this many microseconds.
    case works(rank: Int, microseconds: UInt32)
    /// It answers no kind of probe.
    case failing
  }

  /// What the probes found.
  public var condition: Condition
  /// Whether programs reported that it does not work.
  public var isReported = false
  /// Whether it was in the band before. The wider limit then applies.
  public var wasInBand = false
}

/// The order of an answer's addresses.
public struct AddressOrder: Hashable, Sendable {
  /// Indices into the answer's addresses, the first one first.
  public let indices: [Int]
  /// The number of addresses, from the first, that take turns at the front.
  public let bandCount: Int
  /// Whether at least one address is known to work.
  public let hasWorking: Bool
  /// Whether every address fails or is reported. Reports are then ignored: they must not rule out every address.
  public let isAllBad: Bool

  /// An address joins the band if it exceeds the best round trip by at most this time or this factor.
  private static let entry = (microseconds: 5_000.0, factor: 1.25)
  /// It leaves the band above this limit.
  private static let exit = (microseconds: 10_000.0, factor: 1.5)

  /// Orders addresses.
  ///
  /// - Parameter standings: one for each address, in the order of the answer.
  public init(_ standings: [AddressStanding]) {
    let isAllBad = standings.allSatisfy { $0.condition == .failing || $0.isReported }
    self.isAllBad = isAllBad
    let bad = standings.map { $0.condition == .failing || $0.isReported && !isAllBad }
    let working = standings.indices.filter { !bad[$0] && standings[$0].time != nil }
    hasWorking = standings.contains { $0.time != nil }
    let unknown = standings.indices.filter { !bad[$0] && standings[$0].condition == .unknown }
    let failing = standings.indices.filter { bad[$0] }
    guard failing.count < standings.count else {
      // If all fail, the fault is more likely on our side: the order does not change.
      indices = Array(standings.indices)
      bandCount = standings.count
      return
    }
    let band = Self.band(working, standings)
    let slower = working.filter { !band.contains($0) }.sorted {
      let (left, right) = (standings[$0].time!, standings[$1].time!)
      return (left.rank, left.microseconds, $0) < (right.rank, right.microseconds, $1)
    }
    indices = band + unknown + slower + failing
    bandCount = band.isEmpty ? unknown.count : band.count
  }

  /// The band, in the order of the answer.
  private static func band(_ working: [Int], _ standings: [AddressStanding]) -> [Int] {
    let best = working.compactMap { standings[$0].time }.min { ($0.rank, $0.microseconds) < ($1.rank, $1.microseconds) }
    guard let best else { return [] }
    return working.filter { index in
      guard let time = standings[index].time, time.rank == best.rank else { return false }
      let limit = standings[index].wasInBand ? exit : entry
      let base = Double(best.microseconds)
      return Double(time.microseconds) <= max(base + limit.microseconds, base * limit.factor)
    }
  }
}

extension AddressStanding {
  fileprivate var time: (rank: Int, microseconds: UInt32)? {
    guard case .works(let rank, let microseconds) = condition else { return nil }
    return (rank, microseconds)
  }
}
