// LeaseWait.swift -- when a daemon looks again for an answer that another one is fetching.

/// The times of further looks, after another daemon got the lease.
public struct LeaseWait: Sequence, IteratorProtocol, Sendable {
  /// Milliseconds from the lost lease on.
  private static let looks: [Double] = [10, 30, 70, 150]
  private static let jitter = 0.2

  private var index = 0
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
    guard index < LeaseWait.looks.count, elapsed < end else { return nil }
    // The last look is at the end of the wait.
    let due = Swift.min(Int64(LeaseWait.looks[index] * spread * 1e6), end)
    index += 1
    defer { elapsed = due }
    return due - elapsed
  }
}
