// RecentAnswers.swift -- answers that the cache does not keep, for queries that one of our own limits stops.
//
// A name with TTL 0 is asked for as often as its clients ask. Repeats within a second are one question.

import DNSWire
import EventLoop
import MessageCache

/// The latest answers with TTL 0, for a second from the start of their transfers. Resolver's loop only.
struct RecentAnswers {
  private struct Recent {
    var answer: FinishedAnswer
    var askedAt: BootInstant
  }

  private var young: [QuestionKey: Recent] = [:]
  private var old: [QuestionKey: Recent] = [:]
  private var turnedAt = BootInstant(nanoseconds: .min)

  private static let lifetime = Duration.seconds(1)
  /// The bounds of the memory: answers of the current second and as many of the last one.
  private static let (mostAnswers, mostOctets) = (512, 4096)

  /// Notes an answer that the cache does not keep.
  ///
  /// - Parameter askedAt: when its transfer began.
  mutating func add(_ answer: FinishedAnswer, to key: QuestionKey, askedAt: BootInstant, now: BootInstant) {
    if now >= turnedAt + RecentAnswers.lifetime { (old, young, turnedAt) = (young, [:], now) }
    guard answer.response.body.count <= RecentAnswers.mostOctets,
      young[key] != nil || young.count < RecentAnswers.mostAnswers
    else { return }
    young[key] = Recent(answer: answer, askedAt: askedAt)
  }

  /// The answer to a question that was asked less than a second ago; nil without such an answer.
  func answer(to key: QuestionKey, now: BootInstant) -> FinishedAnswer? {
    guard !young.isEmpty || !old.isEmpty, let recent = young[key] ?? old[key],
      now < recent.askedAt + RecentAnswers.lifetime
    else { return nil }
    return recent.answer
  }

  mutating func removeAll() { self = RecentAnswers() }
}
