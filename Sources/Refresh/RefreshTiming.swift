// RefreshTiming.swift -- decides when to fetch an entry again: before it expires, and after failures.
//
// Pure: the caller passes in the clock. All times are in nanoseconds.

/// The due times of entries.
public struct RefreshTiming: Hashable, Sendable {
  /// The fraction of its lifetime after which an entry is refreshed, before jitter.
  public let fraction: Double
  /// Entries with a shorter lifetime are not refreshed early.
  public let minimumTTL: Int64
  /// Whether one daemon of a fleet refreshes for all.
  public let isShared: Bool

  /// How far jitter moves a due time, as a fraction of the wait, so that entries stored together drift apart.
  public static let jitter = 0.1

  /// The longest wait after failed refreshes of a name in `refresh.keep`.
  public static let longestBackOff = 300 * second

  private static let second: Int64 = 1_000_000_000
  /// The shortest wait after a failure.
  private static let shortestBackOff = second
  /// The longest time that a question waits for others to share a transfer: jitter spreads names over a tenth of their
  /// lifetimes, so hardly any would meet within a second or two.
  private static let longestGathering = 30 * second

  /// - Precondition: `fraction` is 0.1 to 0.99, and `minimumTTL` is not negative.
  public init(fraction: Double, minimumTTL: Int64, isShared: Bool = false) {
    precondition((0.1...0.99).contains(fraction) && minimumTTL >= 0)
    self.fraction = fraction
    self.minimumTTL = minimumTTL
    self.isShared = isShared
  }

  /// Returns a number from -1 to 1 for `due(storedAt:lifetime:jitter:)`.
  ///
  /// All answers of one transfer should get one number: those with equal lifetimes then fall due together and can share
  /// the next transfer.
  @inlinable
  public static func drawJitter(using generator: inout some RandomNumberGenerator) -> Double {
    Double.random(in: -1...1, using: &generator)
  }

  /// Returns when to refresh an entry; nil if its lifetime is too short to refresh it early.
  ///
  /// That is at `fraction` of its lifetime, up to 10 % of that earlier or later, and early enough for a transfer: two
  /// seconds before its end, or a fifth of its lifetime if that is less. If the fraction leaves less time than that,
  /// the limit is one second or a twentieth. If the limit cuts the jitter off, jitter spreads over the rest of its
  /// range, so that due times do not pile up at the limit. Where refreshes are shared it is not earlier, unless
  /// the limit leaves no room: of many daemons the first one refreshes, so their earliest due time counts for all.
  ///
  /// - Parameter jitter: -1 for the earliest time to 1 for the latest.
  public func due(storedAt: Int64, lifetime: Int64, jitter: Double) -> Int64? {
    guard lifetime > 0, lifetime >= minimumTTL else { return nil }
    let wanted = Double(lifetime) * fraction
    let spread = wanted * RefreshTiming.jitter
    let slow = Double(lifetime - RefreshTiming.reserve(of: lifetime))
    let end = slow >= wanted ? slow : Double(lifetime - min(RefreshTiming.second, lifetime / 20))
    let latest = min(wanted + spread, end)
    let earliest = isShared ? max(wanted - spread, latest - spread) : wanted - spread
    let position = (min(max(jitter, -1), 1) + 1) / 2
    return storedAt + Int64(earliest + (latest - earliest) * position)
  }

  /// Returns when to check an entry once more that was not hot at its due time: as late as a transfer allows.
  public func lastLook(storedAt: Int64, lifetime: Int64) -> Int64 {
    storedAt + max(lifetime, 0) - RefreshTiming.reserve(of: max(lifetime, 0))
  }

  /// Returns when to retry a failed refresh; nil to let the entry expire.
  ///
  /// Each wait is half of the remaining lifetime, but at least a second.
  public func retry(now: Int64, expiresAt: Int64) -> Int64? {
    let left = expiresAt - now
    guard left > RefreshTiming.shortestBackOff else { return nil }
    return now + max(left / 2, RefreshTiming.shortestBackOff)
  }

  /// Returns when to refresh a name in `refresh.keep`.
  ///
  /// An answer whose lifetime is too short to refresh it early is refreshed `minimumTTL`, or a second, after it was
  /// stored: anything shorter would be a busy loop.
  public func dueOnKeepList(storedAt: Int64, lifetime: Int64, jitter: Double) -> Int64 {
    due(storedAt: storedAt, lifetime: lifetime, jitter: jitter)
      ?? storedAt + max(minimumTTL, RefreshTiming.shortestBackOff)
  }

  /// Returns when to retry a failed refresh of a name in `refresh.keep`; these are retried without end.
  ///
  /// The waits begin with `minimumTTL` (at least a second) and double up to five minutes. While a cached entry is
  /// alive, the name is retried as early as any other, and those attempts do not lengthen the later waits.
  ///
  /// - Parameters:
  ///   - doublings: 0 after a success; this function increments it.
  ///   - expiresAt: when the cached entry expires; nil without an entry.
  public func retryOnKeepList(now: Int64, expiresAt: Int64?, doublings: inout UInt8) -> Int64 {
    let first = min(max(minimumTTL, RefreshTiming.shortestBackOff), RefreshTiming.longestBackOff)
    let backOff = now + min(first << Int64(min(doublings, 9)), RefreshTiming.longestBackOff)
    if let expiresAt, let early = retry(now: now, expiresAt: expiresAt), early < backOff { return early }
    doublings = min(doublings + 1, 9)
    return backOff
  }

  /// Returns until when a due question waits for others to share a transfer: 30 s or a twentieth of its lifetime,
  /// whichever is less, and no longer than a transfer allows.
  ///
  /// - Parameter now: when the question was found due.
  public func gatheringDeadline(now: Int64, storedAt: Int64, lifetime: Int64) -> Int64 {
    let patience = min(RefreshTiming.longestGathering, max(lifetime, 0) / 20)
    let latest = storedAt + lifetime - RefreshTiming.reserve(of: lifetime)
    return max(now, min(now + patience, latest))
  }

  /// The part of a lifetime that a transfer needs: it may take two seconds.
  private static func reserve(of lifetime: Int64) -> Int64 { min(2 * second, lifetime / 5) }
}
