// LeaseWait.swift -- when a daemon looks again for an answer that another one is fetching.

/// The times of further looks, after another daemon got the lease.
public struct LeaseWait: Sequence, IteratorProtocol, Sendable {
  /// The first pause in nanoseconds; each further one is twice as long: after 10, 30, 70, 150 ms and so on.
  private static let firstPause = 10e6
  private static let jitter = 0.2

  private var pause = LeaseWait.firstPause
  private var elapsed: Int64 = 0
  private let end: Int64
  private let spread: Double

  /// - Parameters:
  ///   - longest: how long to wait at most, in nanoseconds (`fleet.wait`).
  ///   - median: the provider's median round trip in nanoseconds; nil if it is not known.
  ///   - random: from 0 to 1, so that the waiting daemons do not look at the same time.
  public init(longest: Int64, median: Int64?, random: Double) {
    end = Swift.min(longest, median.map { 2 * $0 } ?? longest)
    spread = 1 + LeaseWait.jitter * (2 * random - 1)
  }

  /// The pause before the next look in nanoseconds; nil if there is none.
  public mutating func next() -> Int64? {
    guard elapsed < end else { return nil }
    // The last look is at the end of the wait.
    let next = Swift.min(Int64(pause * spread), end - elapsed)
    pause *= 2
    elapsed += next
    return next
  }
}
