// RefreshOverheadTests.swift -- what the schedule costs with everything that it works with: cache, resolver, budget.
//
// In a release build with 100,000 names: Benchmarks/README.md has the command. Otherwise with few, for the code's sake.

import Configuration
import DNSWire
import EventLoop
import Glibc
import HTTPDNS
import LocalDNS
import MessageCache
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Refresh
@testable import Resolver
@testable import Upstreams

/// A provider that has every answer at once, eight names a transfer.
private final class InstantUpstream: TestUpstream, @unchecked Sendable {
  let name = "instant"
  var traits = UpstreamTraits(timeout: .seconds(2))
  /// Questions that were asked.
  var questions = 0

  func ask(
    _ question: HTTPDNSQuestion, for asking: any QuestionInFlight, deadline: BootInstant, isLastResort: Bool
  ) async -> Result<UpstreamAnswer, UpstreamFailure> {
    questions += 1
    return .success(answer(question))
  }

  func refresh(
    _ questions: [HTTPDNSQuestion], deadline: BootInstant
  ) async -> Result<[HTTPDNSQuestion: Result<UpstreamAnswer, UpstreamFailure>], UpstreamFailure> {
    self.questions += questions.count
    return .success(Dictionary(uniqueKeysWithValues: questions.map { ($0, .success(answer($0))) }))
  }

  private func answer(_ question: HTTPDNSQuestion) -> UpstreamAnswer {
    UpstreamAnswer(answer: .addresses(question.name, "192.0.2.1", ttl: 600), server: "instant")
  }
}

@Suite(.serialized) struct RefreshOverheadTests {
  private let loop = SimulatedLoop()
  private let upstream = InstantUpstream()
  private let cache = MessageCache(CacheBounds(maxOctets: 256 << 20, maxEntries: 200_000), seed: 1)
  private let resolver: Resolver
  private let questions: [HTTPDNSQuestion]

  private static let names = getenv("HTTPDNSD_TEST_COST") == nil ? 1_000 : 100_000

  init() {
    upstream.traits.mostNames = 8
    questions = (0..<Self.names).map { HTTPDNSQuestion(name: name("host\($0).bench.example"), type: .a) }
    nonisolated(unsafe) let parts: ([any Upstream], ReplySender) = (
      [upstream],
      ReplySender(ClientQueries(capacity: 64), on: loop, maxUDPPayload: 1232) { _, _, _ in }
    )
    var settings = ResolverSettings(Configuration(), ResolverScene.routes(providers: 1))
    (settings.listen.missesPerClient, settings.listen.missesPerDomain) = (0, 0)
    resolver = Resolver(
      on: loop,
      settings: settings,
      cache: cache, network: CurrentNetwork(of: cache), upstreams: parts.0, local: nil, replies: parts.1
    ) { _, _ in }
  }

  /// CPU seconds of this process so far.
  private var cpu: Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// Asks for each name, eight at a time, spread over a TTL.
  private func askAll() {
    for first in stride(from: 0, to: questions.count, by: 8) {
      let asked = questions[first..<min(first + 8, questions.count)].map {
        RefreshedQuestion(asked: RoutedQuestion(question: $0, route: 0), hash: 0, heat: Heat(rawValue: 1))
      }
      loop.run { [resolver] in _ = await resolver.refresh(asked, from: .provider(0)) }
      loop.advance(by: .nanoseconds(600_000_000_000 * 8 / Int64(questions.count)))
    }
  }

  @Test func `a refresh costs a few microseconds beyond its transfer and what becomes of the answer`() {
    // The same transfers into the same cache without a schedule.
    askAll()
    let begin = cpu
    askAll()
    let plain = (cpu - begin) / Double(questions.count)
    var configuration = Configuration()
    configuration.refresh.giveUpAfter = 1_000_000
    (configuration.refresh.budgetPerMinute, configuration.refresh.freePerMinute) = (1_000_000, 1_000_000)
    configuration.refresh.budgetPerDay = 1_000_000_000
    let refresher = Refresher(
      configuration, keep: [], preload: [], resolver: resolver, cache: cache, loop: loop, note: { _ in })
    refresher.begin()
    askAll()
    #expect(refresher.scheduled >= questions.count)
    let (asked, start) = (upstream.questions, cpu)
    loop.advance(by: .seconds(900))
    let count = upstream.questions - asked
    let scheduled = (cpu - start) / Double(count)
    #expect(count > questions.count)
    #expect(refresher.counters.failures == 0 && refresher.counters.overBudget == 0)
    let cost = (scheduled - plain) * 1e6
    print(
      "refreshing \(questions.count) names: \(scheduled * 1e6) us each, \(plain * 1e6) us without the schedule: \(cost) us"
    )
    if getenv("HTTPDNSD_TEST_COST") != nil { #expect(cost <= 5) }
  }
}
