// ProviderMemory.swift -- what a provider learns from past replies: names that it does not list, names that clients
// ask for in both address families, and the provider's clock.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache

/// The questions of one transfer.
package enum AskedQuestions {
  case one(HTTPDNSQuestion)
  case batch(QuestionBatch)

  /// The number of questions.
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

/// The outcome of one transfer.
package struct ProviderReplies: Sendable {
  /// The server's address or name, human-readable.
  var server: String
  /// The result for each question.
  var results: [(question: HTTPDNSQuestion, result: Result<HTTPDNSAnswer, HTTPDNSFailure>)]

  init(server: String, results: [(HTTPDNSQuestion, Result<HTTPDNSAnswer, HTTPDNSFailure>)]) {
    self.server = server
    self.results = results
  }

  /// Returns the result for a question; compares name and type only, not client subnet and flags.
  package func answer(to question: HTTPDNSQuestion) -> Result<HTTPDNSAnswer, HTTPDNSFailure> {
    results.first { $0.question.name == question.name && $0.question.type == question.type }?.result
      ?? .failure(.wrongQuestion)
  }

  /// The questions that were answered, with their answers.
  var answers: [(question: HTTPDNSQuestion, answer: HTTPDNSAnswer)] {
    results.compactMap { question, result in
      guard case .success(let answer) = result else { return nil }
      return (question, answer)
    }
  }
}

/// Questions that a provider recently answered with an ambiguous empty answer.
struct NotListedNames {
  private struct Key: Hashable {
    let name: DomainName
    let type: RecordType
  }

  private var until: [Key: BootInstant] = [:]
  /// Bounds memory: at this size, expired entries are dropped, or all entries if none has expired.
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

  /// Forgets the entries of these names.
  ///
  /// - Returns: the number of forgotten names and types.
  mutating func remove(_ names: CacheSelection) -> Int {
    let before = until.count
    until = until.filter { !names.contains($0.key.name) }
    return before - until.count
  }
}

/// Names that clients ask for in both address families. Only for these, a transfer asks for both.
struct PairedNames {
  private var seen: [DomainName: UInt8] = [:]
  private static let most = 10_000

  /// Records a question; returns whether both families of its name had been asked for before.
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

/// One transfer for both address families of a name. Each caller waits for it until its own deadline.
/// Resolver's loop only; `@unchecked Sendable` because tasks on that loop capture it.
final class PairInFlight: @unchecked Sendable {
  private let loop: any Loop
  private let waiters: Waiters
  private var result: Result<ProviderReplies, UpstreamFailure>?
  private var wanted: [@Sendable () -> Bool] = []

  init(on loop: any Loop) {
    self.loop = loop
    waiters = Waiters(on: loop)
  }

  /// Ends the transfer and resumes all callers.
  func end(_ result: Result<ProviderReplies, UpstreamFailure>) {
    loop.assertCurrent()
    self.result = result
    waiters.resumeAll()
  }

  /// Whether any caller still wants another server to be tried.
  var isWanted: Bool { wanted.isEmpty || wanted.contains { $0() } }

  /// Returns the result of the transfer, or a failure at `deadline`.
  ///
  /// - Parameter isWanted: whether this caller wants another server to be tried after a failure.
  func result(
    by deadline: BootInstant, isWanted: @escaping @Sendable () -> Bool
  ) async -> Result<ProviderReplies, UpstreamFailure> {
    loop.assertCurrent()
    wanted.append(isWanted)
    if result == nil { await waiters.wait(atMost: deadline - loop.now) }
    return result ?? .failure(.noTimeLeft)
  }
}

/// The provider's clock, against which it checks signatures.
struct ProviderClock {
  /// Seconds by which the provider is ahead of the machine.
  private(set) var offset: Int64 = 0

  /// Differences up to this many seconds are not corrected: `Date` has whole seconds and some transit time.
  private static let tolerance: Int64 = 2

  /// Converts to the provider's time, in seconds since 1970.
  func unixTime(wallTime: Int64) -> Int64 { wallTime + offset }

  /// Learns from the `Date` of an authenticated response.
  mutating func learn(_ date: Int64, wallTime: Int64) {
    let difference = date - wallTime
    guard abs(difference - offset) > ProviderClock.tolerance else { return }
    offset = abs(difference) > ProviderClock.tolerance ? difference : 0
  }
}

extension HTTPDNSFailure {
  /// Whether a wrong clock may be the cause. Not every provider reports which part of a signature it refused.
  var mayBeTheClock: Bool { self == .expired || self == .authentication }

  /// A human-readable remedy.
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
  /// Calls `body` with each question. A single question, the common case, needs no array.
  package func forEachQuestion(_ body: (HTTPDNSQuestion) -> Void) {
    switch self {
    case .one(let question): body(question)
    case .batch(let batch): batch.questions.forEach(body)
    }
  }
}
