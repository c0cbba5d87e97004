// FailureCache.swift -- remembers which upstream gave no verdict on which question, so that it is not asked again at once.
//
// RFC 9520. Nothing follows for other questions, not even of the same name.

import DNSWire
import EventLoop
import FairShares
import MessageCache
import Upstreams

/// Questions that an upstream did not answer, with a wait each, which starts at one second and doubles with each failure.
/// Resolver's loop only.
struct FailureCache {
  private struct Key: Hashable {
    var question: QuestionKey
    var upstream: Int
  }

  private struct Failure {
    var until: BootInstant
    var wait: Duration
    var at: BootInstant
    var reason: UpstreamFailure
  }

  /// The number of LocalDNS among the upstreams; a provider's is its place in the configuration.
  static let localDNS = -1

  private var failures: [Key: Failure] = [:]
  /// When an upstream is asked in spite of its failures, and the domain of the last such question.
  private var turns: [Int: (next: BootInstant, domain: DomainKey)] = [:]
  private let longestWait: Duration
  /// The number of failures checked to make room so far, for tests.
  private(set) var steps = 0

  /// RFC 9520 section 3.2: at least one second.
  private static let firstWait = Duration.seconds(1)
  /// While an upstream has given no verdict since, one question per interval is sent in spite of its wait, so that the end of
  /// an outage is noticed; a domain waits four intervals for its next turn.
  private static let trialInterval = Duration.milliseconds(500)
  /// Limits the memory: above it, expired failures make room first, then any. What is forgotten is asked again.
  private static let limit = 4096

  init(longestWait: Duration) { self.longestWait = max(longestWait, FailureCache.firstWait) }

  var isEmpty: Bool { failures.isEmpty }

  /// The number of failures, including expired ones.
  var count: Int { failures.count }

  /// Why the upstream is not asked the question yet; nil if it may be asked.
  ///
  /// - Parameters:
  ///   - verdicts: the upstream's verdicts.
  ///   - takesTrial: whether a trial counts as asked.
  mutating func failure(
    of question: QuestionKey, at upstream: Int, _ domain: DomainKey, _ verdicts: VerdictTimes, takesTrial: Bool,
    now: BootInstant
  ) -> UpstreamFailure? {
    guard !failures.isEmpty, let failure = failures[Key(question: question, upstream: upstream)],
      now < failure.until, failure.at > verdicts.recoveredAt
    else { return nil }
    let turn = turns[upstream] ?? (BootInstant(nanoseconds: .min), domain)
    let next = turn.domain == domain ? turn.next + FailureCache.trialInterval * 3 : turn.next
    guard failure.at > verdicts.last, now >= failure.at + FailureCache.firstWait, now >= next else {
      return failure.reason
    }
    if takesTrial { turns[upstream] = (now + FailureCache.trialInterval, domain) }
    return nil
  }

  /// Notes that the upstream gave no verdict. The wait doubles unless the previous one ended more than the maximum ago.
  mutating func failed(
    _ question: QuestionKey, at upstream: Int, _ reason: UpstreamFailure, _ verdicts: VerdictTimes, now: BootInstant
  ) {
    let key = Key(question: question, upstream: upstream)
    let previous = failures[key].flatMap {
      now < $0.until + longestWait && $0.at > verdicts.recoveredAt ? $0.wait : nil
    }
    let wait = previous.map { min($0 * 2, longestWait) } ?? FailureCache.firstWait
    if failures.count >= FailureCache.limit, failures[key] == nil { makeRoom(now: now) }
    failures[key] = Failure(until: now + wait, wait: wait, at: now, reason: reason)
  }

  /// Notes a verdict.
  mutating func succeeded(_ question: QuestionKey, at upstream: Int) {
    if !failures.isEmpty { failures[Key(question: question, upstream: upstream)] = nil }
  }

  mutating func removeAll() { (failures, turns) = ([:], [:]) }

  /// Removes the failures of the selected names.
  ///
  /// - Returns: the number of removed failures.
  mutating func remove(_ names: NameSelection) -> Int {
    let before = failures.count
    failures = failures.filter { !names.contains(key: $0.key.question.octets) }
    return before - failures.count
  }

  /// The questions of the selected names that an upstream is not asked yet: the octets of their keys, the upstreams, the ends
  /// of their waits and the reasons. The latest failures come first.
  func waiting(
    _ names: NameSelection, now: BootInstant
  ) -> [(key: [UInt8], upstream: Int, until: BootInstant, reason: UpstreamFailure)] {
    failures.filter { now < $0.value.until && names.contains(key: $0.key.question.octets) }
      .sorted { $0.value.at > $1.value.at }
      .map { ($0.key.question.octets, $0.key.upstream, $0.value.until, $0.value.reason) }
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
