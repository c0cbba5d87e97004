// Patience.swift -- how long a question waits for a provider before the next upstream is asked as well.
//
// A provider need not be declared down: while it gives no verdict, questions wait for it a little longer than it
// usually takes. So a provider that answers is never overtaken, and a dead provider costs each name 150 ms. A client
// that asks for names without answers can make the patience short, which changes nothing for names that have an answer.

import EventLoop
import FairShares

/// When an upstream gave verdicts.
package struct VerdictTimes: Sendable {
  package fileprivate(set) var last = BootInstant(nanoseconds: .min)
  /// The first one after a silence: what failed before is worth another attempt.
  package fileprivate(set) var recoveredAt = BootInstant(nanoseconds: .min)
}

/// The latest verdicts of a provider, and the questions that it has got since. Pure: times are parameters.
package struct Patience: ~Copyable, Sendable {
  private struct Sample {
    var client: ClientKey
    var domain: DomainKey
    var at: BootInstant
    /// Nanoseconds.
    var time: Int64
  }

  /// When the provider gave its verdicts.
  package private(set) var verdicts = VerdictTimes()
  /// When a client asked the oldest question that has got no verdict, or the time of the last verdict if that is later;
  /// nil without such a question.
  package private(set) var silentSince: BootInstant?
  private var questions = 0
  /// The first domains of these questions.
  private var domains: [DomainKey] = []
  private var samples: [Sample] = []
  /// The times of the samples, the shortest first.
  private var times: [Int64] = []

  /// The number of verdicts that the usual time is the median of, and of one client's among them.
  private static let (mostSamples, mostOfClient) = (15, 5)
  /// Of one domain a verdict counts once in this time, so that its servers do not decide what is usual.
  private static let sampleInterval = Duration.seconds(1)
  /// The bounds of the usual time.
  private static let (fastest, slowest) = (Duration.milliseconds(20), Duration.milliseconds(250))
  /// How old a question without a verdict has to be, and how many domains or questions have to be without one.
  private static let (longestSilence, fewDomains, fewQuestions) = (Duration.seconds(2), 3, 5)
  /// The short patience, and the same as a multiple of the usual time: the longer one counts.
  private static let (least, timesUsual) = (Duration.milliseconds(150), 4)
  /// The provider's usual time; before the first verdict the one of which `least` is the short patience.
  package private(set) var usual = Patience.least / Patience.timesUsual
  /// How long a question waits before the next upstream is asked as well, while the provider gives no verdicts.
  package private(set) var short = Patience.least

  package init() {}

  /// The median of what the latest verdicts took, without bounds; nil before the first one.
  package var median: Duration? { times.isEmpty ? nil : .nanoseconds(times[(times.count - 1) / 2]) }

  /// Whether several names were asked for since the last verdict.
  package var hasSeveralWithout: Bool { domains.count >= Patience.fewDomains || questions >= Patience.fewQuestions }

  /// Whether the provider gives no verdicts: a question is two seconds old, and several were asked since.
  package func isSilent(now: BootInstant) -> Bool {
    hasSeveralWithout && silentSince.map { now - $0 >= Patience.longestSilence } ?? false
  }

  /// Notes a question that is sent.
  ///
  /// - Parameter askedAt: when its client asked; earlier if other providers were asked before.
  package mutating func sent(_ domain: DomainKey, askedAt: BootInstant) {
    let since = max(askedAt, verdicts.last)
    silentSince = min(silentSince ?? since, since)
    questions += 1
    if domains.count < Patience.fewDomains, !domains.contains(domain) { domains.append(domain) }
  }

  /// Notes a verdict.
  ///
  /// - Parameters:
  ///   - client: the one whose question it was.
  ///   - time: from the request to the reply.
  ///   - wasAway: whether the provider was not asked for a while.
  /// - Returns: whether it is the first one after a silence.
  package mutating func gaveVerdict(
    on domain: DomainKey, of client: ClientKey, after time: Duration, wasAway: Bool, now: BootInstant
  ) -> Bool {
    let hasRecovered = wasAway || isSilent(now: now)
    if hasRecovered { verdicts.recoveredAt = now }
    verdicts.last = now
    forgetQuestions()
    guard !samples.contains(where: { $0.domain == domain && now - $0.at < Patience.sampleInterval }) else {
      return hasRecovered
    }
    var replaced = samples.count == Patience.mostSamples ? 0 : nil
    if samples.count(where: { $0.client == client }) == Patience.mostOfClient {
      replaced = samples.firstIndex { $0.client == client }
    }
    if let replaced, let place = times.firstIndex(of: samples.remove(at: replaced).time) { times.remove(at: place) }
    let sample = Sample(client: client, domain: domain, at: now, time: time.nanoseconds)
    samples.append(sample)
    times.insert(sample.time, at: times.firstIndex { $0 > sample.time } ?? times.count)
    if let median { usual = min(max(median, Patience.fastest), Patience.slowest) }
    short = max(Patience.least, usual * Patience.timesUsual)
    return hasRecovered
  }

  /// Forgets the silence: on another network the same provider may answer.
  package mutating func networkHasChanged(now: BootInstant) {
    verdicts.recoveredAt = now
    forgetQuestions()
  }

  private mutating func forgetQuestions() {
    silentSince = nil
    questions = 0
    domains.removeAll(keepingCapacity: true)
  }
}
