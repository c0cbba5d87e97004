// LeaseWait.swift -- when a daemon polls the store for an answer that another daemon is fetching.

/// The pauses between polls after another daemon has won the lease. Polls happen about 10, 30, 70 and 150 ms after the
/// first lookup, and so on: each pause is twice the one before.
public struct LeaseWait: Sequence, IteratorProtocol, Sendable {
  /// In nanoseconds.
  private static let firstPause = 10e6
  private static let jitter = 0.2

  private var pause = LeaseWait.firstPause
  private var elapsed: Int64 = 0
  private let end: Int64
  private let spread: Double

  /// - Parameters:
  ///   - longest: the longest total wait in nanoseconds (`fleet.wait`).
  ///   - median: the provider's median round trip in nanoseconds; nil if unknown. The total wait is at most twice this.
  ///   - random: jitter from 0 to 1, so that the waiting daemons do not poll at the same time.
  public init(longest: Int64, median: Int64?, random: Double) {
    end = Swift.min(longest, median.map { 2 * $0 } ?? longest)
    spread = 1 + LeaseWait.jitter * (2 * random - 1)
  }

  /// The pause before the next poll in nanoseconds; nil at the end of the wait.
  public mutating func next() -> Int64? {
    guard elapsed < end else { return nil }
    // The last poll is at the end of the wait.
    let next = Swift.min(Int64(pause * spread), end - elapsed)
    pause *= 2
    elapsed += next
    return next
  }
}
