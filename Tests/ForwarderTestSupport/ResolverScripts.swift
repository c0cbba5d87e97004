// ResolverScripts.swift -- providers and LocalDNS that do what a test says, and remember what they were asked and when.

import Configuration
import DNSWire
import EventLoop
import Glibc
import HTTPDNS
import LocalDNS
import LocalDNSTestSupport
import Refresh

@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// What a scripted upstream does with one question.
struct ScriptedStep {
  /// How long it takes, unless the deadline or the timeout comes first.
  var latency: Duration
  /// What comes of it; nil for silence until the deadline.
  var result: Result<HTTPDNSAnswer, UpstreamFailure>?

  static func answer(_ answer: HTTPDNSAnswer, after latency: Duration = .milliseconds(20)) -> ScriptedStep {
    ScriptedStep(latency: latency, result: .success(answer))
  }

  /// A failure after that time.
  static func failure(
    _ error: ExtendedError = .networkError, _ consequence: Consequence = .nextServer,
    after latency: Duration = .milliseconds(20)
  ) -> ScriptedStep {
    ScriptedStep(latency: latency, result: .failure(UpstreamFailure(error, "scripted", consequence)))
  }

  /// Nothing until the deadline.
  static let silence = ScriptedStep(latency: .seconds(3600), result: nil)
}

/// A question that an upstream was asked.
struct ScriptedQuestion {
  var question: HTTPDNSQuestion
  var at: BootInstant
  var deadline: BootInstant
}

extension RefreshPrice {
  /// A transfer that is billed.
  static let oneUnit = RefreshPrice(isBilled: true, perTransfer: 1, perAnswer: 0)
}

/// A provider of a test, whose verdicts come at once unless it says otherwise.
protocol TestUpstream: Upstream {}

extension TestUpstream {
  var pace: UpstreamPace { .prompt }
  var medianRoundTrip: Duration? { nil }
  var report: ProviderReport { ProviderReport(name: name) }
  func serves(_ question: HTTPDNSQuestion) -> Bool { true }
  func isFit(for question: HTTPDNSQuestion) -> Bool { true }
  func reasonToSkip(_ question: HTTPDNSQuestion, mayFallBack: Bool, isInUse: () -> Bool) -> UpstreamFailure? { nil }
  func refresh(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure> {
    .failure(.unserved)
  }
  func forgetNotListed(_ names: NameSelection) -> Int { 0 }
  func follow(by observer: any TransferObserver, onRecovery: @escaping () -> Void) {}
}

/// A provider. Its answers come from `script`, which gets the question and how many were asked before.
final class ScriptedUpstream: TestUpstream, @unchecked Sendable {
  typealias Script = (HTTPDNSQuestion, Int) -> ScriptedStep

  let name: String
  var traits = UpstreamTraits(timeout: .seconds(2))
  /// Why new names are refused.
  var refusalOfNew: UpstreamFailure?
  /// The types that it cannot carry.
  var unserved: Set<RecordType> = []
  /// Whether it carries no names but those of letters, digits, hyphens and underscores.
  var isForPlainNames = false
  /// Attempts of `timeout` each that it makes of a silent step, as a provider with this number of servers would.
  var servers = 1
  /// Whether it is silent beyond the deadline that it was given.
  var ignoresDeadline = false
  var script: Script
  /// What comes along with an answer to a question.
  var along: (HTTPDNSQuestion) -> [(question: HTTPDNSQuestion, answer: HTTPDNSAnswer)] = { _ in [] }
  private(set) var asked: [ScriptedQuestion] = []
  /// How many were asked, also where they are not remembered.
  private(set) var count = 0
  var remembers = true
  /// Whether background work may use it.
  var isFit = true
  /// Names that background work does not ask for, since it has said that it does not list them.
  var unlisted: Set<DomainName> = []
  /// Names with which a background transfer of several names is refused.
  var refusedAmongOthers: Set<DomainName> = []
  /// The questions of each background transfer.
  private(set) var refreshes: [(questions: [HTTPDNSQuestion], at: BootInstant)] = []
  /// What is known of its verdicts.
  var patience = Patience()
  var pace: UpstreamPace {
    UpstreamPace(
      isSilent: patience.isSilent(now: loop.now), shortPatience: patience.short, verdicts: patience.verdicts)
  }
  private let loop: any Loop

  init(_ name: String = "first", on loop: any Loop, _ script: @escaping Script) {
    self.name = name
    self.loop = loop
    self.script = script
    traits.knowsDNSSECFlags = true
  }

  private var onRecovery: () -> Void = {}

  func follow(by observer: any TransferObserver, onRecovery: @escaping () -> Void) { self.onRecovery = onRecovery }

  /// Says that it is well again.
  func tellBack() { onRecovery() }

  func reasonToSkip(_ question: HTTPDNSQuestion, mayFallBack: Bool, isInUse: () -> Bool) -> UpstreamFailure? {
    refusalOfNew.flatMap { isInUse() ? nil : $0 }
  }

  func refresh(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure> {
    if remembers { refreshes.append((questions, loop.now)) }
    let steps = questions.map { script($0, count) }
    count += 1
    if Set(questions.map(\.name)).count > 1, questions.contains(where: { refusedAmongOthers.contains($0.name) }) {
      return .failure(UpstreamFailure(HTTPDNSFailure.notListed))
    }
    await loop.sleep(for: min(steps.map(\.latency).max() ?? .zero, timeout))
    var answers: [HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>] = [:]
    for (question, step) in zip(questions, steps) where step.latency <= timeout {
      answers[question] = step.result?.map {
        UpstreamAnswer(answer: $0, server: "192.0.2.1", others: along(question))
      }
    }
    return answers.isEmpty
      ? .failure(UpstreamFailure(.noReachableAuthority, "silent", .nextServer)) : .success(answers)
  }

  func serves(_ question: HTTPDNSQuestion) -> Bool {
    !unserved.contains(question.type) && (!isForPlainNames || question.name.isPlain)
  }

  func isFit(for question: HTTPDNSQuestion) -> Bool {
    isFit && serves(question) && !unlisted.contains(question.name)
  }

  func ask(
    _ question: HTTPDNSQuestion, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    let step = script(question, count)
    count += 1
    if remembers { asked.append(ScriptedQuestion(question: question, at: loop.now, deadline: deadline)) }
    let longest = ignoresDeadline ? step.latency : min(timeout * servers, max(.zero, deadline - loop.now))
    await loop.sleep(for: min(step.latency, longest))
    guard step.latency <= longest, let result = step.result else {
      return .failure(UpstreamFailure(.noReachableAuthority, "silent", .nextServer))
    }
    return result.map { UpstreamAnswer(answer: $0, server: "192.0.2.1", others: along(question)) }
  }
}

/// LocalDNS. Its answers come straight from `script`, or through plain resolvers of the kind that
/// `HTTPDNSD_TEST_RESOLVERS` names.
final class ScriptedLocalDNS: LocalUpstream, @unchecked Sendable {
  /// Whether there is a server.
  var isThere = true
  var script: ScriptedUpstream.Script
  private(set) var asked: [ScriptedQuestion] = []
  private let loop: any Loop

  init(on loop: any Loop, _ script: @escaping ScriptedUpstream.Script) {
    self.loop = loop
    self.script = script
  }

  var addresses: [PlainResolver] { isThere ? [PlainResolver(SocketAddress(text: "192.0.2.53:53")!)] : [] }

  func hasServers(_ servers: [Configuration.LocalServer]) -> Bool { isThere && !servers.isEmpty }

  func ask(
    _ question: HTTPDNSQuestion, _ servers: [Configuration.LocalServer], timeout: Duration
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    let step = script(question, asked.count)
    asked.append(ScriptedQuestion(question: question, at: loop.now, deadline: loop.now + timeout))
    await loop.sleep(for: min(step.latency, timeout))
    guard step.latency <= timeout, let result = step.result else {
      return .failure(UpstreamFailure(.noReachableAuthority, "no answer in time", .nextUpstream))
    }
    guard let kind = ScriptedLocalDNS.kind, case .success(let answer) = result else {
      return result.map { UpstreamAnswer(answer: $0, server: "localdns") }
    }
    return await through(kind, question, answer)
  }

  private static let kind = getenv("HTTPDNSD_TEST_RESOLVERS").map { text in
    guard let kind = LabKind(String(cString: text)) else {
      preconditionFailure("HTTPDNSD_TEST_RESOLVERS is not one of: \(LabKind.all.filter(\.isPrompt).map(\.description))")
    }
    return kind
  }

  private func through(
    _ kind: LabKind, _ question: HTTPDNSQuestion, _ answer: HTTPDNSAnswer
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    let laboratory = Laboratory(on: loop)
    let resolvers = kind.setUp(in: laboratory, latency: .zero) { query in
      var response = query.response(answer.responseCode)
      (response.answers, response.authorities) = (answer.answers, answer.authorities)
      response.header.ad = answer.isAuthenticated
      return response
    }
    let list = [Configuration.LocalServer.system]
    return await LocalDNSUpstream(
      LocalDNSClient(over: laboratory), on: loop, systemServers: resolvers, configured: list
    ).ask(question, list, timeout: .seconds(1))
  }
}

/// A name in a test.
func name(_ text: String) -> DomainName { DomainName(text: text)! }

extension HTTPDNSAnswer {
  static func addresses(_ owner: DomainName, _ texts: String..., ttl: UInt32 = 300) -> HTTPDNSAnswer {
    HTTPDNSAnswer(
      responseCode: .noError,
      answers: texts.map { text in
        let address = IPAddress(text: text)!
        return ResourceRecord(owner: owner, type: address.isIPv6 ? .aaaa : .a, ttl: ttl, rdata: address.octets)
      })
  }

  /// NXDOMAIN or NODATA, with the SOA record of a zone or without one.
  static func negative(
    _ code: ResponseCode, zone: DomainName? = nil, ttl: UInt32 = 900, minimum: UInt32 = 900
  ) -> HTTPDNSAnswer {
    HTTPDNSAnswer(
      responseCode: code, authorities: zone.map { [ResourceRecord.soa($0, ttl: ttl, minimum: minimum)] } ?? [],
      isNegative: true)
  }
}

extension ResourceRecord {
  static func soa(_ owner: DomainName, ttl: UInt32, minimum: UInt32) -> ResourceRecord {
    var rdata = name("ns.example").octets + name("hostmaster.example").octets
    for number in [2_026, 3600, 600, 86_400, minimum] as [UInt32] {
      withUnsafeBytes(of: number.bigEndian) { rdata += $0 }
    }
    return ResourceRecord(owner: owner, type: .soa, ttl: ttl, rdata: rdata)
  }

  static func alias(_ owner: DomainName, _ target: DomainName, ttl: UInt32) -> ResourceRecord {
    ResourceRecord(owner: owner, type: .cname, ttl: ttl, rdata: target.octets)
  }
}
