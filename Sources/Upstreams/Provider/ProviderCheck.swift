// ProviderCheck.swift -- tests with a question known to be good whether a failure was caused by the question.
//
// Resolver's loop only. A client can choose a question that makes a server time out, fail or refuse, so a client's
// question alone never counts against a server or an account.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import PublicSuffixes

/// Questions that a provider is known to answer.
struct GoodQuestions {
  /// The names of `refresh.keep`, which are preferred.
  var keepListNames: Set<DomainName> = []
  private let chosen: HTTPDNSQuestion?
  private var fromKeepList: HTTPDNSQuestion?
  /// The latest good questions, each of a different domain, the oldest first.
  private var latest: [(domain: DomainName, question: HTTPDNSQuestion)] = []
  private var nextNote = BootInstant(nanoseconds: .min)

  private static let mostDomains = 8
  /// When the list is full, the minimum interval between two additions.
  private static let noteInterval = Duration.seconds(1)

  /// - Parameter checkName: the configured name, if there is one.
  init(checkName: DomainName? = nil) { chosen = checkName.map { HTTPDNSQuestion(name: $0, type: .a) } }

  var isEmpty: Bool { chosen == nil && fromKeepList == nil && latest.isEmpty }

  /// Records a question that the provider has answered with data.
  mutating func note(_ question: HTTPDNSQuestion, now: BootInstant) {
    guard now >= nextNote || latest.count < GoodQuestions.mostDomains else { return }
    let good = HTTPDNSQuestion(name: question.name, type: question.type)
    if keepListNames.contains(question.name) {
      if fromKeepList == nil || !keepListNames.contains(fromKeepList!.name) { fromKeepList = good }
      return
    }
    nextNote = now + GoodQuestions.noteInterval
    let domain = PublicSuffixes.domain(of: question.name)
    latest.removeAll { $0.domain == domain }
    if latest.count == GoodQuestions.mostDomains { latest.removeFirst() }
    latest.append((domain, good))
  }

  /// Takes over what the previous provider of the same name has learned.
  mutating func inherit(_ other: GoodQuestions) {
    latest = other.latest
    nextNote = other.nextNote
  }

  /// All good questions. Probes rotate through them, since one of their zones may be dead.
  var all: [HTTPDNSQuestion] { [chosen, fromKeepList].compactMap(\.self) + latest.map(\.question) }

  /// Returns up to two questions to check with: of different domains, and not of the failed question's domain unless
  /// they come from the configuration. The oldest come first, because a client that asks a failing question may have
  /// asked a good one just before.
  func questions(insteadOf failed: HTTPDNSQuestion) -> [HTTPDNSQuestion] {
    var found = [chosen, fromKeepList].compactMap(\.self).filter { $0.name != failed.name }
    guard found.count < 2, !latest.isEmpty else { return found }
    let domain = PublicSuffixes.domain(of: failed.name)
    found += latest.filter { $0.domain != domain }.map(\.question).filter { !found.contains($0) }
    return Array(found.prefix(2))
  }
}

/// Failures of one server that the questions may have caused, and its last replies.
struct ServerSuspicion {
  /// Failures since the last reply that the questions may have caused.
  var failures = 0
  /// Whether a good question has failed as well since the last reply.
  var isConfirmed = false
  /// The time of the last usable reply.
  var lastReply = BootInstant(nanoseconds: .min)
  /// The time since which usable replies have arrived without a gap.
  var wellSince = BootInstant(nanoseconds: .min)

  init() {}

  init(lastReply: BootInstant, wellSince: BootInstant) {
    self.lastReply = lastReply
    self.wellSince = wellSince
  }
}

/// The result of a check.
enum CheckVerdict {
  /// The server answers a good question.
  case isWell
  /// The server does not answer good questions.
  case isNotWell
  /// The provider refuses good questions.
  case refuses(HTTPDNSFailure)
  /// No good question is known, or no transfer was possible.
  case saysNothing
}

/// One check; several failed questions can wait for its result.
///
/// Resolver's loop only; `@unchecked Sendable` because tasks on that loop capture it.
final class ProviderCheck: @unchecked Sendable {
  let startedAt: BootInstant
  var verdicts: [Int: CheckVerdict] = [:]
  /// The number of bad replies of each server so far.
  var bad: [Int: Int] = [:]
  var isOver = false
  let waiters: Waiters
  /// The tasks that wait for a server's first reply, good or bad.
  private var firstReplies: [Int: Waiters] = [:]
  private let loop: any Loop

  init(on loop: any Loop) {
    self.loop = loop
    startedAt = loop.now
    waiters = Waiters(on: loop)
  }

  /// Suspends until the server has replied or the timeout expires.
  func firstReply(of index: Int, atMost timeout: Duration) async {
    loop.assertCurrent()
    guard verdicts[index] == nil, bad[index] == nil else { return }
    let those = firstReplies[index] ?? Waiters(on: loop)
    firstReplies[index] = those
    await those.wait(atMost: timeout)
  }

  /// Resumes the tasks that wait for the first reply of a server.
  func hasReplied(_ index: Int) {
    loop.assertCurrent()
    firstReplies[index]?.resumeAll()
  }
}

extension HTTPDNSProvider {
  /// The minimum interval between two checks, since each costs a transfer.
  static let checkInterval = Duration.seconds(5)
  /// The maximum time that a client's question waits for a check.
  static let longestCheck = Duration.seconds(1)
  /// The time after which the second good question is sent if the first has no reply.
  private static let secondCheck = Duration.milliseconds(300)
  /// A reply within this time shows that the server works.
  private static let freshReply = Duration.seconds(1)
  /// While no good question is known, refusals of this many consecutive domains count against the account.
  private static let mostRefusedDomains = 3
  /// The number of refusals in a row that are the account's although only names of the same domain were ever answered.
  private static let mostRefusals = 8

  /// Records a usable reply of a server.
  func replied(_ index: Int) {
    health.succeeded(index, now: loop.now.nanoseconds)
    if suspicions.indices.contains(index) {
      let wellSince = isFresh(suspicions[index].lastReply) ? suspicions[index].wellSince : loop.now
      suspicions[index] = ServerSuspicion(lastReply: loop.now, wellSince: wellSince)
    }
    refusedDomains = []
    refusalsInARow = 0
    logStateChange()
    // A reply that was in flight when the provider began to back off does not end that.
    guard hasTrouble, health.fitness(now: loop.now.nanoseconds) == .up else { return }
    hasTrouble = false
    onRecovery?()
  }

  /// Decides what the failure of a client's question says about server, account and question, and applies it to the
  /// health.
  ///
  /// - Parameters:
  ///   - began: when the transfer began.
  ///   - hadItsTime: whether the server had as much time as an attempt may take.
  func judged(
    _ problem: UpstreamFailure, at index: Int, _ asked: HTTPDNSQuestion, began: BootInstant, hadItsTime: Bool,
    deadline: BootInstant
  ) async -> UpstreamFailure {
    var failure = problem
    switch (failure.blame, problem.evidence) {
    case (.ourselves, _): break
    // The server replied, but the reply does not prove that it works.
    case (.question, _), (.answer, _): health.succeeded(index, now: loop.now.nanoseconds)
    case (.account, _):
      guard let refusal = problem.refusal, await isAccountsFault(refusal, at: index, asked, began, deadline) else {
        failure.blame = .question
        break
      }
      hasTrouble = true
      setAside(for: refusal)
    case (.server, .certain), (.network, .certain): failed(index)
    // A server that had less than its timeout has not failed, but another one may be faster.
    case (.server, .late), (.network, .late):
      guard hadItsTime else { break }
      let hasReplied = hasReplied(index, since: began)
      // Another server may still have an answer.
      let isTheQuestion = hasReplied || servers.count == 1 && wasWell(index, since: began)
      if !hasReplied, suspect(index, asked) {
        Task(executorPreference: loop) { _ = await self.check(index, insteadOf: asked, began: began) }
      }
      if isTheQuestion {
        failure.blame = .question
        failure.isLate = true
      }
    case (.server, .doubtful), (.network, .doubtful):
      if hasReplied(index, since: began) {
        failure.blame = .answer
      } else if suspect(index, asked) {
        let verdict = await check(index, insteadOf: asked, began: began, deadline: deadline)
        // If it is too soon for another check, the last one counts.
        if case .isWell = verdict { failure.blame = .answer }
        if problem.isReply, wasWell(index, since: began) { failure.blame = .answer }
      }
    }
    return failure
  }

  /// Whether the server has replied to other questions all the time. A server that has just recovered proves nothing
  /// about questions lost before.
  private func hasReplied(_ index: Int, since began: BootInstant) -> Bool {
    isFresh(suspicions[index].lastReply) && suspicions[index].wellSince <= began
  }

  /// Whether the last check found the server working, is recent enough to prevent another one, and the server has
  /// worked since before the question was sent: a server that has just recovered proves nothing about questions lost
  /// before.
  private func wasWell(_ index: Int, since began: BootInstant) -> Bool {
    guard let lastCheck, lastCheck.startedAt + HTTPDNSProvider.checkInterval > loop.now,
      suspicions[index].wellSince <= began
    else { return false }
    if case .isWell = lastCheck.verdicts[index] { return !suspicions[index].isConfirmed }
    return false
  }

  private func isFresh(_ time: BootInstant) -> Bool { time + HTTPDNSProvider.freshReply >= loop.now }

  /// Records a failure that counts against the server.
  func failed(_ index: Int) {
    hasTrouble = true
    if servers.indices.contains(index) { servers[index].connectionFailed(now: loop.now) }
    let (first, wasUp) = (health.rotation.current, health.fitness(now: loop.now.nanoseconds) == .up)
    health.failed(index, now: loop.now.nanoseconds)
    let isDown = health.fitness(now: loop.now.nanoseconds) == .down
    if health.rotation.current != first { counters.demotions.count(.server) }
    if isDown, wasUp { counters.demotions.count(.down) }
    if isDown { schedule?.allHaveFailed() }
    logStateChange()
    armProbe()
  }

  /// Records a failure that the question may have caused.
  ///
  /// - Returns: whether a check must decide; otherwise the failure has been counted.
  private func suspect(_ index: Int, _ asked: HTTPDNSQuestion) -> Bool {
    hasTrouble = true
    guard !suspicions[index].isConfirmed, !good.questions(insteadOf: asked).isEmpty else {
      failed(index)
      return false
    }
    suspicions[index].failures += 1
    return true
  }

  /// Whether the refusal concerns the account and not only this question.
  private func isAccountsFault(
    _ refusal: HTTPDNSFailure, at index: Int, _ asked: HTTPDNSQuestion, _ began: BootInstant, _ deadline: BootInstant
  ) async -> Bool {
    guard !good.questions(insteadOf: asked).isEmpty else {
      // No question was ever answered: a configured account may be wrong.
      let mayBeTheAccount = settings.kind.hasAccount && !refusal.mayBeTheQuestion
      if good.isEmpty, mayBeTheAccount { return true }
      // Only names of this domain were ever answered. Its owner may have caused the refusal, but nothing else is asked.
      refusalsInARow += 1
      if mayBeTheAccount, refusalsInARow >= HTTPDNSProvider.mostRefusals { return true }
      refusedDomains.insert(PublicSuffixes.domain(of: asked.name))
      return refusedDomains.count >= HTTPDNSProvider.mostRefusedDomains
    }
    guard case .refuses = await check(index, insteadOf: asked, began: began, deadline: deadline) else { return false }
    return true
  }

  /// Sends good questions to this server and to all suspected ones. If the last check is too recent, schedules another
  /// one for the servers that are still suspected then.
  private func check(
    _ index: Int, insteadOf asked: HTTPDNSQuestion, began: BootInstant, deadline: BootInstant? = nil
  ) async -> CheckVerdict {
    let longest = HTTPDNSProvider.longestCheck
    let wait = deadline.map { min($0 - loop.now, longest) } ?? longest
    if let running = lastCheck, !running.isOver { await running.waiters.wait(atMost: wait) }
    // Another task that waited for the same check may have begun the next one.
    if let last = lastCheck {
      if let verdict = last.verdicts[index], last.startedAt >= began || isFresh(last.startedAt) {
        return verdict
      }
      guard last.isOver else { return .saysNothing }
      let next = last.startedAt + HTTPDNSProvider.checkInterval
      guard loop.now >= next else {
        armCheck(at: next, insteadOf: asked)
        return .saysNothing
      }
    }
    let questions = good.questions(insteadOf: asked)
    guard !questions.isEmpty, hasUnits, !isRetired else { return .saysNothing }
    let check = ProviderCheck(on: loop)
    lastCheck = check
    Task(executorPreference: loop) { await self.run(check, questions, besides: index) }
    await check.waiters.wait(atMost: wait)
    return check.verdicts[index] ?? .saysNothing
  }

  private func armCheck(at time: BootInstant, insteadOf asked: HTTPDNSQuestion) {
    guard checkTimer == nil else { return }
    checkTimer = loop.schedule(at: time) { [weak self] in
      guard let self else { return }
      checkTimer = nil
      let suspect = suspicions.firstIndex { $0.failures > 0 && !$0.isConfirmed }
      guard let suspect else { return }
      Task(executorPreference: loop) { _ = await self.check(suspect, insteadOf: asked, began: self.loop.now) }
    }
  }

  /// Checks the suspects first. If one of them fails, checks the others too, to detect an outage of all servers at
  /// once.
  private func run(_ check: ProviderCheck, _ questions: [HTTPDNSQuestion], besides index: Int) async {
    let servers = servers
    let suspects = suspicions.indices.filter { $0 == index || suspicions[$0].failures > 0 }
    await ask(check, questions, of: suspects, servers)
    let hasFailed = suspects.contains { if case .isNotWell = check.verdicts[$0] { true } else { false } }
    let others = suspicions.indices.filter { check.verdicts[$0] == nil && !suspicions[$0].isConfirmed }
    if hasFailed, !others.isEmpty, hasUnits { await ask(check, questions, of: others, servers) }
    check.isOver = true
    check.waiters.resumeAll()
  }

  /// A server works if it answers one of the questions, and has failed if it answers none, since one zone may be dead.
  private func ask(
    _ check: ProviderCheck, _ questions: [HTTPDNSQuestion], of indices: [Int], _ servers: [ProviderServer]
  ) async {
    await withTaskGroup(of: (Int, CheckVerdict?).self) { group in
      for index in indices.prefix(HTTPDNSProvider.mostAttempts) {
        group.addTask(executorPreference: loop) { (index, await self.verdict(at: index, questions[0])) }
        guard questions.count > 1 else { continue }
        group.addTask(executorPreference: loop) {
          await check.firstReply(of: index, atMost: HTTPDNSProvider.secondCheck)
          guard check.verdicts[index] == nil else { return (index, nil) }
          return (index, await self.verdict(at: index, questions[1]))
        }
      }
      for await (index, verdict) in group where isCurrent(servers) {
        guard let verdict, check.verdicts[index] == nil else { continue }
        defer { check.hasReplied(index) }
        if case .isWell = verdict {
        } else {
          check.bad[index, default: 0] += 1
          guard check.bad[index] == questions.count else { continue }
        }
        check.verdicts[index] = verdict
        follow(verdict, at: index)
        check.waiters.resumeAll()
      }
    }
  }

  private func verdict(at index: Int, _ question: HTTPDNSQuestion) async -> CheckVerdict {
    guard servers.indices.contains(index), hasUnits else { return .saysNothing }
    counters.checks += 1
    return verdict(await ask(servers[index], .one(question), timeout: timeout))
  }

  /// Classifies the result of a good question.
  func verdict(_ result: Result<ProviderReplies, UpstreamFailure>) -> CheckVerdict {
    guard case .failure(let problem) = result else { return .isWell }
    return switch problem.blame {
    case .question, .answer: .isWell
    case .account: problem.refusal.map { .refuses($0) } ?? .saysNothing
    case .server, .network: .isNotWell
    case .ourselves: .saysNothing
    }
  }

  private func follow(_ verdict: CheckVerdict, at index: Int) {
    switch verdict {
    case .isWell: replied(index)
    case .isNotWell:
      let suspected = suspicions[index].failures
      suspicions[index].failures = 0
      suspicions[index].isConfirmed = true
      for _ in 0...min(suspected, settings.attemptsBeforeSwitch) { failed(index) }
    case .refuses(let refusal):
      hasTrouble = true
      setAside(for: refusal)
    case .saysNothing: break
    }
  }
}

extension HTTPDNSFailure {
  /// Whether a client's question can cause the refusal although the service accepts the account.
  fileprivate var mayBeTheQuestion: Bool { self == .badParameter || self == .badPath }
}
