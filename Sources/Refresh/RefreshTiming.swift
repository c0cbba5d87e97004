// RefreshTiming.swift -- when an entry is fetched again: ahead of its end, after failures, and always for kept names.
//
// Pure: the clock is passed in. Everything is in nanoseconds.

/// When entries are fetched again.
public struct RefreshTiming: Hashable, Sendable {
  /// The part of its lifetime after which an entry is fetched again, before jitter.
  public let fraction: Double
  /// Entries that live shorter are not fetched ahead.
  public let minimumTTL: Int64

  /// How far jitter moves a due time, as a part of the wait: what came together does not come together for ever.
  public static let jitter = 0.1

  /// The longest wait after failures of a kept name.
  public static let longestBackOff = 300 * second

  private static let second: Int64 = 1_000_000_000
  /// The shortest wait after a failure.
  private static let shortestBackOff = second
  /// The longest time that a question waits for others to travel with: jitter parts names by a tenth of their lifetimes,
  /// so that hardly any would meet within a second or two.
  private static let longestGathering = 30 * second

  /// The timing of a configuration.
  ///
  /// - Precondition: `fraction` is 0.1 to 0.99, and `minimumTTL` is not negative.
  public init(fraction: Double, minimumTTL: Int64) {
    precondition((0.1...0.99).contains(fraction) && minimumTTL >= 0)
    self.fraction = fraction
    self.minimumTTL = minimumTTL
  }

  /// A number from -1 to 1 for `due(storedAt:lifetime:jitter:)`.
  ///
  /// What came in one transfer should get one number: with equal lifetimes it is due together again and can travel
  /// together.
  @inlinable
  public static func drawJitter(using generator: inout some RandomNumberGenerator) -> Double {
    Double.random(in: -1...1, using: &generator)
  }

  /// When an entry is to be fetched again; nil where it lives too short to be fetched ahead.
  ///
  /// That is at `fraction` of its lifetime, 10 % of that earlier or later, and early enough for a transfer: two seconds
  /// before its end, or a fifth of its lifetime where that is less; where the fraction does not leave as much, a second
  /// or a twentieth. Where that cuts the jitter off, jitter spreads over what is left of its range, so that due times do
  /// not meet at the limit.
  ///
  /// - Parameter jitter: -1 for the earliest time to 1 for the latest.
  public func due(storedAt: Int64, lifetime: Int64, jitter: Double) -> Int64? {
    guard lifetime > 0, lifetime >= minimumTTL else { return nil }
    let wanted = Double(lifetime) * fraction
    let earliest = wanted * (1 - RefreshTiming.jitter)
    let slow = Double(lifetime - RefreshTiming.reserve(of: lifetime))
    let end = slow >= wanted ? slow : Double(lifetime - min(RefreshTiming.second, lifetime / 20))
    let latest = min(wanted * (1 + RefreshTiming.jitter), end)
    let position = (min(max(jitter, -1), 1) + 1) / 2
    return storedAt + Int64(earliest + (latest - earliest) * position)
  }

  /// When an entry that was not hot at its due time is looked at once more: as late as leaves a transfer its time.
  public func lastLook(storedAt: Int64, lifetime: Int64) -> Int64 {
    storedAt + max(lifetime, 0) - RefreshTiming.reserve(of: max(lifetime, 0))
  }

  /// When an entry is tried again whose refresh has failed; nil where it is left to expire.
  ///
  /// Half of what is left of its time is waited each time, a second at least.
  public func retry(now: Int64, expiresAt: Int64) -> Int64? {
    let left = expiresAt - now
    guard left > RefreshTiming.shortestBackOff else { return nil }
    return now + max(left / 2, RefreshTiming.shortestBackOff)
  }

  /// When a name that is always kept fresh is fetched again.
  ///
  /// An answer that lives too short to be fetched ahead is fetched again `minimumTTL`, or a second, after it was stored:
  /// anything else would be a busy loop.
  public func dueOfKept(storedAt: Int64, lifetime: Int64, jitter: Double) -> Int64 {
    due(storedAt: storedAt, lifetime: lifetime, jitter: jitter)
      ?? storedAt + max(minimumTTL, RefreshTiming.shortestBackOff)
  }

  /// When a name that is always kept fresh is tried again after a failure; unlike others it is, whatever happens.
  ///
  /// The waits begin with `minimumTTL` (a second at least) and double up to five minutes. While there is an entry it is
  /// tried as early as any other, and those attempts do not make the later waits longer.
  ///
  /// - Parameters:
  ///   - doublings: 0 after a success; counted here.
  ///   - expiresAt: when the entry ends; nil where there is none.
  public func retryOfKept(now: Int64, expiresAt: Int64?, doublings: inout UInt8) -> Int64 {
    let first = min(max(minimumTTL, RefreshTiming.shortestBackOff), RefreshTiming.longestBackOff)
    let backOff = now + min(first << Int64(min(doublings, 9)), RefreshTiming.longestBackOff)
    if let expiresAt, let early = retry(now: now, expiresAt: expiresAt), early < backOff { return early }
    doublings = min(doublings + 1, 9)
    return backOff
  }

  /// Until when a question that is due waits for others to travel with: 30 s or a twentieth of its lifetime, whichever is
  /// less, and no longer than leaves a transfer its time.
  ///
  /// - Parameter now: when it was found due.
  public func gatheringDeadline(now: Int64, storedAt: Int64, lifetime: Int64) -> Int64 {
    let patience = min(RefreshTiming.longestGathering, max(lifetime, 0) / 20)
    let latest = storedAt + lifetime - RefreshTiming.reserve(of: lifetime)
    return max(now, min(now + patience, latest))
  }

  /// What a transfer needs of a lifetime: it may take two seconds.
  private static func reserve(of lifetime: Int64) -> Int64 { min(2 * second, lifetime / 5) }
}
