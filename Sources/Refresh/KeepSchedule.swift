// KeepSchedule.swift -- when each name that is always kept fresh is to be fetched again.
//
// Pure: driven by a clock that is passed in, in nanoseconds.

/// The due times of a fixed list of questions.
public struct KeepSchedule: Sendable {
  /// The fraction of the lifetime after which an answer is fetched again.
  public let fraction: Double
  /// Answers that hold for less are not fetched ahead but after this time, in nanoseconds: anything else would be a busy
  /// loop.
  public let shortest: Int64
  private var due: [Int64]
  private var failures: [Int]

  /// The longest wait after failures, in nanoseconds.
  private static let longestBackOff: Int64 = 300_000_000_000

  /// A schedule for `count` questions, all due at once.
  public init(count: Int, fraction: Double, shortest: Int64) {
    self.fraction = fraction
    self.shortest = shortest
    due = Array(repeating: .min, count: count)
    failures = Array(repeating: 0, count: count)
  }

  /// The time at which the next question is due; nil where all are being fetched.
  public var nextDue: Int64? { due.filter { $0 != .max }.min() }

  /// Takes the questions that are due; none of them is due again before its outcome has been noted.
  public mutating func take(now: Int64) -> [Int] {
    let taken = due.indices.filter { due[$0] <= now }
    for index in taken { due[index] = .max }
    return taken
  }

  /// A question was answered with data that holds for `lifetime` nanoseconds.
  public mutating func succeeded(_ index: Int, lifetime: Int64, now: Int64) {
    failures[index] = 0
    due[index] = now + (lifetime < shortest ? shortest : Int64(Double(lifetime) * fraction))
  }

  /// A question could not be answered: the wait doubles from `shortest` on.
  public mutating func failed(_ index: Int, now: Int64) {
    let doublings = min(failures[index], 16)
    failures[index] += 1
    due[index] = now + min(KeepSchedule.longestBackOff, max(shortest, 1_000_000_000) << Int64(doublings))
  }
}
