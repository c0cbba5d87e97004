// FailureCache.swift -- questions that failed a moment ago (RFC 9520): nobody is asked again before a wait.

import DNSWire
import EventLoop
import FairShares
import MessageCache
import Upstreams

/// Remembers failures with a wait that doubles from one second on. Resolver's loop only.
struct FailureCache {
  private struct Failure {
    var until: BootInstant
    var wait: Duration
    var blame: Blame
    var at: BootInstant
  }

  private var failures: [QuestionKey: Failure] = [:]
  private let longestWait: Duration
  private var nextTrial = BootInstant(nanoseconds: 0)
  private var lastTried: DomainKey?
  /// Failures that were looked at to make room so far, for tests.
  private(set) var steps = 0

  /// RFC 9520 section 3.2: at least one second.
  private static let firstWait = Duration.seconds(1)
  /// A question whose failure was not its own may be tried although its wait is not over, so that an outage's end is seen
  /// at once: one of all questions in this time.
  private static let trialInterval = Duration.milliseconds(500)
  /// A bound on memory: beyond it, failures that are over make room, then any.
  private static let limit = 4096

  init(longestWait: Duration) { self.longestWait = max(longestWait, FailureCache.firstWait) }

  /// How many questions are remembered.
  var count: Int { failures.count }

  /// Whether the question must not be asked yet.
  func isWaiting(_ key: QuestionKey, now: BootInstant) -> Bool {
    failures[key].map { now < $0.until } ?? false
  }

  /// Whether the question may be asked in spite of its wait: now and then one may whose failure was the server's, the
  /// account's or the network's, and is a second old (RFC 9520 section 3.2). Names of one domain do not take all turns.
  func mayTry(_ key: QuestionKey, of domain: DomainKey, now: BootInstant) -> Bool {
    guard let failure = failures[key], failure.blame.endsWithRecovery else { return false }
    let turn = domain == lastTried ? nextTrial + FailureCache.trialInterval * 3 : nextTrial
    return now >= failure.at + FailureCache.firstWait && now >= turn
  }

  /// The question is asked in spite of its wait.
  mutating func tries(_ domain: DomainKey, now: BootInstant) {
    nextTrial = now + FailureCache.trialInterval
    lastTried = domain
  }

  /// The question failed. A failure that has been over for the longest wait has nothing to do with this one.
  mutating func failed(_ key: QuestionKey, _ blame: Blame, now: BootInstant) {
    let previous = failures[key].flatMap { now < $0.until + longestWait ? $0.wait : nil }
    let wait = previous.map { min($0 * 2, longestWait) } ?? FailureCache.firstWait
    if failures.count >= FailureCache.limit, failures[key] == nil { makeRoom(now: now) }
    failures[key] = Failure(until: now + wait, wait: wait, blame: blame, at: now)
  }

  /// A provider is back: waits that were its fault, its account's or the network's are over.
  ///
  /// - Complexity: O(n) in the number of remembered questions.
  mutating func endWaitsForProviders() { failures = failures.filter { !$0.value.blame.endsWithRecovery } }

  /// The question was answered.
  mutating func succeeded(_ key: QuestionKey) {
    if !failures.isEmpty { failures[key] = nil }
  }

  /// Forgets everything.
  mutating func removeAll() { failures = [:] }

  /// Forgets the failures of those names.
  ///
  /// - Returns: how many they were.
  mutating func remove(_ names: CacheSelection) -> Int {
    let before = failures.count
    failures = failures.filter { !names.contains(key: $0.key.octets) }
    return before - failures.count
  }

  /// Questions of those names that must not be asked yet, by the octets of their keys, and until when.
  func waiting(_ names: CacheSelection, now: BootInstant) -> [(key: [UInt8], until: BootInstant)] {
    failures.compactMap { key, failure in
      now < failure.until && names.contains(key: key.octets) ? (key.octets, failure.until) : nil
    }
  }

  /// Forgets what has been over for as long as it lasted, and of the rest so many that an eighth is free: the next look at
  /// all of them is that far away, whatever comes.
  private mutating func makeRoom(now: BootInstant) {
    steps += failures.count
    failures = failures.filter { now < $0.value.until + $0.value.wait }
    let surplus = failures.count - FailureCache.limit / 8 * 7
    guard surplus > 0 else { return }
    for key in failures.keys.prefix(surplus) { failures[key] = nil }
  }
}
