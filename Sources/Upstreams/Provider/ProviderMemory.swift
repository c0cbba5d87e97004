// ProviderMemory.swift -- what a provider's own past says: which names it does not have, which are asked for in pairs, what
// time it is there.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache

/// What one transfer asks.
package enum AskedQuestions {
  case one(HTTPDNSQuestion)
  case batch(QuestionBatch)

  /// How many questions they are.
  var count: Int {
    switch self {
    case .one: 1
    case .batch(let batch): batch.names.count * batch.types.count
    }
  }

  /// The question, or the first of the batch.
  var first: HTTPDNSQuestion {
    switch self {
    case .one(let question): question
    case .batch(let batch): batch.questions[0]
    }
  }
}

/// What one transfer brought.
package struct ProviderReplies: Sendable {
  /// The server, for people.
  var server: String
  /// What was said to each question.
  var results: [(question: HTTPDNSQuestion, result: Result<HTTPDNSAnswer, HTTPDNSFailure>)]

  init(server: String, results: [(HTTPDNSQuestion, Result<HTTPDNSAnswer, HTTPDNSFailure>)]) {
    self.server = server
    self.results = results
  }

  /// What was said to a question; who it was asked for with which flags does not matter.
  package func answer(to question: HTTPDNSQuestion) -> Result<HTTPDNSAnswer, HTTPDNSFailure> {
    results.first { $0.question.name == question.name && $0.question.type == question.type }?.result
      ?? .failure(.wrongQuestion)
  }

  /// The questions that have answers.
  var answers: [(question: HTTPDNSQuestion, answer: HTTPDNSAnswer)] {
    results.compactMap { question, result in
      guard case .success(let answer) = result else { return nil }
      return (question, answer)
    }
  }
}

/// Questions that a provider answered emptily lately.
struct NotListedNames {
  private struct Key: Hashable {
    let name: DomainName
    let type: RecordType
  }

  private var until: [Key: BootInstant] = [:]
  /// A bound on memory: when so many are remembered, those that are over are dropped, and all where none is.
  private static let most = 10_000

  func contains(_ question: HTTPDNSQuestion, now: BootInstant) -> Bool {
    guard !until.isEmpty, let end = until[Key(name: question.name, type: question.type)] else { return false }
    return now < end
  }

  mutating func insert(_ question: HTTPDNSQuestion, until end: BootInstant, now: BootInstant) {
    if until.count >= NotListedNames.most {
      until = until.filter { now < $0.value }
      if until.count >= NotListedNames.most { until = [:] }
    }
    until[Key(name: question.name, type: question.type)] = end
  }

  /// Forgets those names.
  ///
  /// - Returns: how many names and types they were.
  mutating func remove(_ names: CacheSelection) -> Int {
    let before = until.count
    until = until.filter { !names.contains($0.key.name) }
    return before - until.count
  }
}

/// Names that were asked for in both address families: only for them the other family is fetched along.
struct PairedNames {
  private var seen: [DomainName: UInt8] = [:]
  private static let most = 10_000

  /// Notes a question; whether both families of its name have been asked for by now.
  mutating func note(_ question: HTTPDNSQuestion) -> Bool {
    let bit: UInt8 = question.type == .a ? 1 : 2
    let before = seen[question.name] ?? 0
    if before | bit != before {
      if before == 0, seen.count >= PairedNames.most { seen = [:] }
      seen[question.name] = before | bit
    }
    return before == 3
  }
}

/// Both address families of a name, asked for in one transfer, for which each asker waits as long as it can.
/// Resolver's loop only: tasks there carry it about.
final class PairUnderWay: @unchecked Sendable {
  private let loop: any Loop
  private let waiters: Waiters
  private var result: Result<ProviderReplies, UpstreamFailure>?
  private var wanted: [@Sendable () -> Bool] = []

  init(on loop: any Loop) {
    self.loop = loop
    waiters = Waiters(on: loop)
  }

  /// The transfer has come to this.
  func end(_ result: Result<ProviderReplies, UpstreamFailure>) {
    self.result = result
    waiters.resumeAll()
  }

  /// Whether any of the askers wants another server to be asked.
  var isWanted: Bool { wanted.isEmpty || wanted.contains { $0() } }

  /// What the transfer comes to, or a failure at that time.
  ///
  /// - Parameter isWanted: whether this asker wants another server to be asked after one that has failed.
  func result(
    by deadline: BootInstant, isWanted: @escaping @Sendable () -> Bool
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    wanted.append(isWanted)
    if result == nil { await waiters.wait(atMost: deadline - loop.now) }
    return result ?? .failure(.noTimeLeft)
  }
}

/// The time at a provider, by which it checks signatures.
struct ProviderClock {
  /// Seconds by which the provider is ahead of the machine.
  private(set) var offset: Int64 = 0

  /// Differences up to this many seconds are those of a header field in whole seconds that was on its way for a while.
  private static let tolerance: Int64 = 2

  /// Seconds since 1970 at the provider.
  func unixTime(wallTime: Int64) -> Int64 { wallTime + offset }

  /// Takes the `Date` of a response whose sender is certain.
  mutating func learn(_ date: Int64, wallTime: Int64) {
    let difference = date - wallTime
    guard abs(difference - offset) > ProviderClock.tolerance else { return }
    offset = abs(difference) > ProviderClock.tolerance ? difference : 0
  }
}

extension HTTPDNSFailure {
  /// Whether a signature that was made at the right time might have been taken. Not every provider says which part of a
  /// signature it refused.
  var mayBeTheClock: Bool { self == .expired || self == .authentication }

  /// What would help, for a person.
  var remedy: String {
    switch self {
    case .authentication: "check the account's id and its key, token or secret in the configuration"
    case .expired: "check the machine's clock"
    case .account: "check in the provider's console that the account exists, is paid for, and may be used this way"
    case .badPath: "check the path in url or servers"
    case .quota: "raise the quota in the provider's console, or lower requests_per_second"
    default: "check the provider's keys in the configuration"
    }
  }
}

extension AskedQuestions {
  /// Calls `body` with each question. Most transfers carry one: it is not put into an array for this.
  package func forEachQuestion(_ body: (HTTPDNSQuestion) -> Void) {
    switch self {
    case .one(let question): body(question)
    case .batch(let batch): batch.questions.forEach(body)
    }
  }
}
