// FailureCache.swift -- caches failed questions, which are asked again only after a wait (RFC 9520).

import DNSWire
import EventLoop
import FairShares
import MessageCache
import Upstreams

/// Failed questions with a wait each, which starts at one second and doubles with each failure. Resolver's loop only.
struct FailureCache {
  private struct Failure {
    var until: BootInstant
    var wait: Duration
    var blame: Blame
    var at: BootInstant
    var reason: String
  }

  private var failures: [QuestionKey: Failure] = [:]
  private let longestWait: Duration
  private var nextTrial = BootInstant(nanoseconds: 0)
  private var lastTried: DomainKey?
  /// The number of failures checked to make room so far, for tests.
  private(set) var steps = 0

  /// RFC 9520 section 3.2: at least one second.
  private static let firstWait = Duration.seconds(1)
  /// A question may be tried during its wait if the failure was not its own, so that the end of an outage is noticed at
  /// once. At most one question is tried per interval.
  private static let trialInterval = Duration.milliseconds(500)
  /// Limits the memory: above it, expired failures make room first, then any.
  private static let limit = 4096

  init(longestWait: Duration) { self.longestWait = max(longestWait, FailureCache.firstWait) }

  /// The number of cached failures, including expired ones.
  var count: Int { failures.count }

  /// Whether the question must not be asked yet.
  func isWaiting(_ key: QuestionKey, now: BootInstant) -> Bool {
    failures[key].map { now < $0.until } ?? false
  }

  /// Whether the question may be tried during its wait. It may if a server, an account or the network was to blame, the
  /// failure is at least a second old (RFC 9520 section 3.2), and the trial interval has passed. The domain of the last
  /// trial waits four intervals, so that one domain does not take all trials.
  func mayTry(_ key: QuestionKey, of domain: DomainKey, now: BootInstant) -> Bool {
    guard let failure = failures[key], failure.blame.endsWithRecovery else { return false }
    let turn = domain == lastTried ? nextTrial + FailureCache.trialInterval * 3 : nextTrial
    return now >= failure.at + FailureCache.firstWait && now >= turn
  }

  /// Notes that a question of this domain is tried during its wait.
  mutating func tries(_ domain: DomainKey, now: BootInstant) {
    nextTrial = now + FailureCache.trialInterval
    lastTried = domain
  }

  /// Caches a failure. The wait doubles unless the previous one ended more than the maximum wait ago.
  ///
  /// - Parameter reason: human-readable.
  mutating func failed(_ key: QuestionKey, _ blame: Blame, reason: String, now: BootInstant) {
    let previous = failures[key].flatMap { now < $0.until + longestWait ? $0.wait : nil }
    let wait = previous.map { min($0 * 2, longestWait) } ?? FailureCache.firstWait
    if failures.count >= FailureCache.limit, failures[key] == nil { makeRoom(now: now) }
    failures[key] = Failure(until: now + wait, wait: wait, blame: blame, at: now, reason: reason)
  }

  /// Removes the failures for which a server, an account or the network was to blame: a provider has recovered.
  ///
  /// - Complexity: O(n) in the number of cached failures.
  mutating func endWaitsForProviders() { failures = failures.filter { !$0.value.blame.endsWithRecovery } }

  /// Removes the question's failure: it was answered.
  mutating func succeeded(_ key: QuestionKey) {
    if !failures.isEmpty { failures[key] = nil }
  }

  mutating func removeAll() { failures = [:] }

  /// Removes the failures of the selected names.
  ///
  /// - Returns: the number of removed failures.
  mutating func remove(_ names: NameSelection) -> Int {
    let before = failures.count
    failures = failures.filter { !names.contains(key: $0.key.octets) }
    return before - failures.count
  }

  /// The questions of the selected names that must not be asked yet: the octets of their keys, the ends of their waits
  /// and the reasons.
  func waiting(_ names: NameSelection, now: BootInstant) -> [(key: [UInt8], until: BootInstant, reason: String)] {
    failures.compactMap { key, failure in
      now < failure.until && names.contains(key: key.octets) ? (key.octets, failure.until, failure.reason) : nil
    }
  }

  /// Removes failures that ended at least their own wait ago, and then others until an eighth of the limit is free, so
  /// that a flood of failures causes one pass over all of them per eighth.
  private mutating func makeRoom(now: BootInstant) {
    steps += failures.count
    failures = failures.filter { now < $0.value.until + $0.value.wait }
    let surplus = failures.count - FailureCache.limit / 8 * 7
    guard surplus > 0 else { return }
    for key in failures.keys.prefix(surplus) { failures[key] = nil }
  }
}
