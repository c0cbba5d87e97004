// ProviderCheck.swift -- whether a failure is the question's own: a question that is known to be good is asked as well.
//
// Resolver's loop only. Anybody may ask a question that a server is late with, chokes on or refuses, so that no client's
// question alone speaks against server or account.

import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import PublicSuffixes

/// Questions that a provider is known to answer.
struct GoodQuestions {
  /// Names whose answer speaks for the provider before all others: `refresh.keep`.
  var keptNames: Set<DomainName> = []
  private let chosen: HTTPDNSQuestion?
  private var kept: HTTPDNSQuestion?
  /// The latest ones, of different domains, the oldest first.
  private var latest: [(domain: DomainName, question: HTTPDNSQuestion)] = []
  private var nextNote = BootInstant(nanoseconds: .min)

  private static let mostDomains = 8
  /// When there are enough, another one is taken up once in this time.
  private static let noteInterval = Duration.seconds(1)

  /// - Parameter checkName: what the configuration says, if it does.
  init(checkName: DomainName? = nil) { chosen = checkName.map { HTTPDNSQuestion(name: $0, type: .a) } }

  /// Whether any is known.
  var isEmpty: Bool { chosen == nil && kept == nil && latest.isEmpty }

  /// The provider has answered this one with data.
  mutating func note(_ question: HTTPDNSQuestion, now: BootInstant) {
    guard now >= nextNote || latest.count < GoodQuestions.mostDomains else { return }
    let good = HTTPDNSQuestion(name: question.name, type: question.type)
    if keptNames.contains(question.name) {
      if kept == nil || !keptNames.contains(kept!.name) { kept = good }
      return
    }
    nextNote = now + GoodQuestions.noteInterval
    let domain = PublicSuffixes.domain(of: question.name)
    latest.removeAll { $0.domain == domain }
    if latest.count == GoodQuestions.mostDomains { latest.removeFirst() }
    latest.append((domain, good))
  }

  /// What was known to whoever had the name before.
  mutating func inherit(_ other: GoodQuestions) {
    latest = other.latest
    nextNote = other.nextNote
  }

  /// All of them: probes take one after the other, since one of their zones may be dead.
  var all: [HTTPDNSQuestion] { [chosen, kept].compactMap(\.self) + latest.map(\.question) }

  /// Two to check with, instead of a question that has failed: of two domains and not of that one's, unless a person has
  /// chosen them. The oldest first, since whoever has asked what fails may have asked what was good a moment before.
  func questions(insteadOf failed: HTTPDNSQuestion) -> [HTTPDNSQuestion] {
    var found = [chosen, kept].compactMap(\.self).filter { $0.name != failed.name }
    guard found.count < 2, !latest.isEmpty else { return found }
    let domain = PublicSuffixes.domain(of: failed.name)
    found += latest.filter { $0.domain != domain }.map(\.question).filter { !found.contains($0) }
    return Array(found.prefix(2))
  }
}

/// What is suspected of one server.
struct ServerSuspicion {
  /// Failures since its last reply that may be their questions' own.
  var failures = 0
  /// Whether a question that is known to be good has failed, too, since its last reply.
  var isConfirmed = false
  /// When it last gave a reply of any use.
  var lastReply = BootInstant(nanoseconds: .min)
  /// Since when replies of use have come without a pause.
  var wellSince = BootInstant(nanoseconds: .min)

  init() {}

  init(lastReply: BootInstant, wellSince: BootInstant) {
    self.lastReply = lastReply
    self.wellSince = wellSince
  }
}

/// What a check has found.
enum CheckVerdict {
  /// The server answers what is known to be good.
  case isWell
  /// It does not.
  case isNotWell
  /// The provider refuses what is known to be good.
  case refuses(HTTPDNSFailure)
  /// Nothing is known to be good, or nobody could be asked now.
  case saysNothing
}

/// One check, for everybody who waits for what it finds.
///
/// Resolver's loop only: tasks there carry it about.
final class ProviderCheck: @unchecked Sendable {
  let startedAt: BootInstant
  var verdicts: [Int: CheckVerdict] = [:]
  /// Replies that do not speak for the server, so far.
  var bad: [Int: Int] = [:]
  var isOver = false
  let waiters: Waiters
  /// Who waits for a server's first reply of either kind.
  private var firstReplies: [Int: Waiters] = [:]
  private let loop: any Loop

  init(on loop: any Loop) {
    self.loop = loop
    startedAt = loop.now
    waiters = Waiters(on: loop)
  }

  /// Returns when a server has replied, or after that time.
  func firstReply(of index: Int, atMost timeout: Duration) async {
    guard verdicts[index] == nil, bad[index] == nil else { return }
    let those = firstReplies[index] ?? Waiters(on: loop)
    firstReplies[index] = those
    await those.wait(atMost: timeout)
  }

  /// A server has replied.
  func hasReplied(_ index: Int) { firstReplies[index]?.resumeAll() }
}

extension HTTPDNSProvider {
  /// At most one check in this time: each costs a transfer.
  static let checkInterval = Duration.seconds(5)
  /// How long a client's question waits for what a check finds.
  static let longestCheck = Duration.seconds(1)
  /// How long the first good question may be silent before the second is asked as well.
  private static let secondCheck = Duration.milliseconds(300)
  /// A reply so short a time ago shows that a server is well.
  private static let freshReply = Duration.seconds(1)
  /// Refusals of so many domains one after the other are the account's, as long as no question is known to be good.
  private static let mostRefusedDomains = 3

  /// A server has given a reply of use.
  func replied(_ index: Int) {
    health.succeeded(index, now: loop.now.nanoseconds)
    if suspicions.indices.contains(index) {
      let wellSince = isFresh(suspicions[index].lastReply) ? suspicions[index].wellSince : loop.now
      suspicions[index] = ServerSuspicion(lastReply: loop.now, wellSince: wellSince)
    }
    refusedDomains = []
    tellStanding()
    // What was in flight when the provider was set aside does not end that.
    guard hasTrouble, health.fitness(now: loop.now.nanoseconds) == .up else { return }
    hasTrouble = false
    recoveryTold?()
  }

  /// What a client's question that failed says about the server and the account, which follows at once; and about itself.
  ///
  /// - Parameters:
  ///   - began: when the transfer began.
  ///   - hadItsTime: whether the server had as long as it may have.
  func judged(
    _ problem: ServerFailure, at index: Int, _ asked: HTTPDNSQuestion, began: BootInstant, hadItsTime: Bool,
    deadline: BootInstant
  ) async -> UpstreamFailure {
    var failure = problem.failure
    switch (failure.blame, problem.evidence) {
    case (.ourselves, _): break
    // It has replied, but not with what would show that it is well.
    case (.question, _), (.answer, _): health.succeeded(index, now: loop.now.nanoseconds)
    case (.account, _):
      guard let refusal = problem.refusal, await isAccountsFault(refusal, at: index, asked, began, deadline) else {
        failure.blame = .question
        break
      }
      hasTrouble = true
      setAside(for: refusal)
    case (.server, .certain), (.network, .certain): failed(index)
    // A server that had less than its time has not failed; another one may still be quicker.
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
        // Where it is too soon for another check, the last one counts.
        if case .isWell = verdict { failure.blame = .answer }
        if problem.isReply, wasWell(index, since: began) { failure.blame = .answer }
      }
    }
    return failure
  }

  /// Whether the server has replied to others all the time. One that has just come back says nothing about what was lost
  /// before.
  private func hasReplied(_ index: Int, since began: BootInstant) -> Bool {
    isFresh(suspicions[index].lastReply) && suspicions[index].wellSince <= began
  }

  /// Whether the check after which another one would come too soon has found the server well, and that was before the
  /// question was sent: one that has just come back says nothing about what was lost before.
  private func wasWell(_ index: Int, since began: BootInstant) -> Bool {
    guard let lastCheck, lastCheck.startedAt + HTTPDNSProvider.checkInterval > loop.now,
      suspicions[index].wellSince <= began
    else { return false }
    if case .isWell = lastCheck.verdicts[index] { return !suspicions[index].isConfirmed }
    return false
  }

  private func isFresh(_ time: BootInstant) -> Bool { time + HTTPDNSProvider.freshReply >= loop.now }

  /// A server has failed for certain.
  func failed(_ index: Int) {
    hasTrouble = true
    if servers.indices.contains(index) { servers[index].connectionFailed(now: loop.now) }
    let (first, wasUp) = (health.rotation.current, health.fitness(now: loop.now.nanoseconds) == .up)
    health.failed(index, now: loop.now.nanoseconds)
    let isDown = health.fitness(now: loop.now.nanoseconds) == .down
    if health.rotation.current != first { counters.demotions.count(.server) }
    if isDown, wasUp { counters.demotions.count(.down) }
    if isDown { schedule?.allHaveFailed() }
    tellStanding()
    armProbe()
  }

  /// A server has failed a question that may be to blame itself.
  ///
  /// - Returns: whether that has to be found out: otherwise it has been counted.
  private func suspect(_ index: Int, _ asked: HTTPDNSQuestion) -> Bool {
    hasTrouble = true
    guard !suspicions[index].isConfirmed, !good.questions(insteadOf: asked).isEmpty else {
      failed(index)
      return false
    }
    suspicions[index].failures += 1
    return true
  }

  /// Whether the account, and not this question alone, is refused.
  private func isAccountsFault(
    _ refusal: HTTPDNSFailure, at index: Int, _ asked: HTTPDNSQuestion, _ began: BootInstant, _ deadline: BootInstant
  ) async -> Bool {
    guard !good.questions(insteadOf: asked).isEmpty else {
      // Nothing has ever been answered: who has an account may have a wrong one.
      if good.isEmpty, settings.hasAccount, !refusal.mayBeTheQuestion { return true }
      refusedDomains.insert(PublicSuffixes.domain(of: asked.name))
      return refusedDomains.count >= HTTPDNSProvider.mostRefusedDomains
    }
    guard case .refuses = await check(index, insteadOf: asked, began: began, deadline: deadline) else { return false }
    return true
  }

  /// Asks a question that is known to be good of this server and all that are suspected, unless that was done a moment
  /// ago; then it is done later, where somebody is still suspected.
  private func check(
    _ index: Int, insteadOf asked: HTTPDNSQuestion, began: BootInstant, deadline: BootInstant? = nil
  ) async -> CheckVerdict {
    let longest = HTTPDNSProvider.longestCheck
    let wait = deadline.map { min($0 - loop.now, longest) } ?? longest
    if let running = lastCheck, !running.isOver { await running.waiters.wait(atMost: wait) }
    // Whoever has waited beside us may have begun another one.
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

  /// The suspects first; where one of them fails, the others as well, or an outage of all would be seen one by one.
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

  /// A server is well if one of the questions is answered, and not if none is: one zone may be dead, whoever owns it.
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

  /// What a reply to a question that ought to be answered says.
  func verdict(_ result: Result<ProviderReplies, ServerFailure>) -> CheckVerdict {
    guard case .failure(let problem) = result else { return .isWell }
    return switch problem.failure.blame {
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
  /// Whether a client's question can cause it at a service that knows our account.
  fileprivate var mayBeTheQuestion: Bool { self == .badParameter || self == .badPath }
}
