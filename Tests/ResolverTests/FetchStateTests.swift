// FetchStateTests.swift -- each state of a question in flight with each event, and what its clients get.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Testing

@testable import ForwarderTestSupport
@testable import Resolver
@testable import Upstreams

/// What happens to a question, in this order.
private enum Event {
  /// An attempt begins.
  case attempt
  /// A provider is asked; after that number of milliseconds another one is asked as well.
  case asks(Int, isImpatient: Bool = false)
  /// That provider has ended, with a failure.
  case fails(FetchResult)
  /// A provider's empty answer may mean "not in the list".
  case isUnsure
  /// No provider is left.
  case asksLocalDNS
  /// LocalDNS, which was asked beside the providers, has ended.
  case localDNS(FetchResult, isImpatient: Bool = false)
  /// An attempt has ended.
  case ends(FetchResult)
  /// A refresh has ended.
  case refreshed(FetchResult)
  /// A client joins.
  case joins
  /// Stale data is given that number of milliseconds later.
  case stale(Int)
  /// The network's LocalDNS is another one.
  case network(UInt32)
  /// A provider says NXDOMAIN below a search domain.
  case denies
  /// It loses its place.
  case isDisplaced
  /// The clients get what comes.
  case given
  /// A transfer that waited has a connection, that number of milliseconds after the start.
  case connects(Int, isImpatient: Bool = false)
  /// When the timer fires next.
  case due(FetchState.Options)
  /// The timer fires, that number of milliseconds after the start.
  case time(Int, FetchState.Options, hasStale: Bool = false, isQueued: Bool = false)
}

@Suite struct `The state of a fetch` {
  private static let question = HTTPDNSQuestion(name: name("www.example.com"), type: .a)

  private static func answer(_ code: ResponseCode, _ source: AnswerSource) -> FetchResult {
    let answer = AnswerPolicy(ttl: ResolverScene.bounds).negative(code, question, chain: [], authorities: [])
    return FetchResult(result: .success(answer!), source: source)
  }

  private static let provider = AnswerSource.provider("one", server: "")
  private static let provided = answer(.noError, provider)
  private static let denied = answer(.nxDomain, provider)
  private static let local = answer(.noError, .localDNS(server: ""))
  private static let localDenied = answer(.nxDomain, .localDNS(server: ""))

  private static func failure(_ consequence: Consequence) -> FetchResult {
    FetchResult(result: .failure(UpstreamFailure(.other, "\(consequence)", consequence)), source: provider)
  }

  private static let silent = FetchResult.failure(.noAnswerInTime)

  private static func options(
    isImpatient: Bool = false, hasNext: Bool = false, fallsBack: Bool = true
  ) -> FetchState.Options {
    FetchState.Options(isImpatient: isImpatient, hasNextProvider: hasNext, fallsBack: fallsBack)
  }

  private static func word(_ result: FetchResult) -> String {
    switch result.result {
    case .success(let answer):
      let source = result.source.isLocalDNS ? "localdns" : "provider"
      return answer.isNXDOMAIN ? "\(source)'s nxdomain" : source
    case .failure(let failure): return failure.reason
    }
  }

  private static func word(_ action: FetchState.Action) -> String {
    switch action {
    case .wait: "wait"
    case .setTimer: "timer"
    case .deliver(let result): word(result)
    case .askUpstreams: "ask upstreams"
    case .askNextProvider: "ask next"
    case .askLocalDNS: "ask localdns"
    }
  }

  /// What the resolver does after the last event.
  private static func outcome(_ events: [Event], isRefresh: Bool = false, isSearched: Bool = false) -> String {
    let start = BootInstant(nanoseconds: 0)
    var state = FetchState(isRefresh: isRefresh, network: 1, now: start)
    var (now, words) = (start, [String]())
    for event in events {
      words = []
      switch event {
      case .attempt: state.attemptBegins(now: now)
      case .asks(let time, let isImpatient):
        state.providerStarted()
        _ = state.beginPatience(.milliseconds(time), isImpatient: isImpatient, now: now)
      case .fails(let result):
        state.providerStopped()
        state.providerFailed(result, isSearched: isSearched)
        switch state.afterProviders(hasSeveral: true) {
        case .result(let result): words = [word(result)]
        case .withoutProvider(let failure, _): words = ["localdns after \(failure?.reason ?? "nothing")"]
        }
      case .isUnsure:
        state.providerStopped()
        state.noteEmpty(provided)
        guard case .withoutProvider(_, let empty) = state.afterProviders(hasSeveral: true) else { break }
        words = [state.holdForLocalDNS(or: empty) ? "wait" : empty.map(word) ?? "nothing"]
      case .asksLocalDNS:
        state.markLocalDNSAsked()
        state.localDNSStarted(on: 1)
      case .localDNS(let result, let isImpatient):
        state.localDNSStopped(hasAnswer: result.answer != nil)
        let action = state.localDNSAttemptEnded(
          result, isImpatient: isImpatient, timeout: .seconds(2), isSearched: isSearched, now: now)
        words = [word(action)]
      case .ends(let result): words = [word(state.attemptEnded(result, isSearched: isSearched))]
      case .refreshed(let result): words = [word(state.refreshEnded(result, isSearched: isSearched))]
      case .joins: words = [state.join(now: now) ? "first" : "another"]
      case .stale(let time): state.giveStaleData(at: now + .milliseconds(time))
      case .network(let number): words = [state.networkIsAnother(number, now: now) ? "timer" : "wait"]
      case .denies:
        switch state.providerDenies(denied) {
        case .waits: words = ["wait"]
        case .data(let result): words = [word(result)]
        case .localDNSWasAsked(let isConfirmed): words = [isConfirmed ? "confirmed" : "unconfirmed"]
        case .asksLocalDNS: words = ["ask localdns"]
        }
      case .connects(let time, let isImpatient):
        now = start + .milliseconds(time)
        state.gotConnection(isImpatient: isImpatient, now: now)
      case .due(let options): words = ["\((state.nextEvent(options) - start).nanoseconds / 1_000_000)"]
      case .isDisplaced: words = [word(state.displace())]
      case .given: words = [state.markAnswered(isAnswer: true) ? "given" : "late"]
      case .time(let time, let options, let hasStale, let isQueued):
        now = start + .milliseconds(time)
        words = state.timeHasCome(options, hasStale: hasStale, isQueued: isQueued, now: now).map(word)
      }
    }
    return words.joined(separator: ", ")
  }

  private static let held: [Event] = [
    .attempt, .asks(200), .time(1000, options()), .asksLocalDNS, .localDNS(local),
  ]

  @Test func `one attempt`() {
    #expect(Self.outcome([.attempt, .ends(Self.provided)]) == "provider")
    #expect(Self.outcome([.attempt, .ends(Self.local)]) == "localdns")
    for consequence in Consequence.allCases {
      #expect(Self.outcome([.attempt, .ends(Self.failure(consequence))]) == "\(consequence)")
    }
  }

  @Test func `a failure beside another attempt waits for it, a verdict does not`() {
    for consequence in Consequence.allCases {
      let expected = consequence == .verdict ? "verdict" : "wait"
      #expect(Self.outcome([.attempt, .attempt, .ends(Self.failure(consequence))]) == expected)
    }
    #expect(Self.outcome([.attempt, .attempt, .ends(Self.silent), .ends(Self.silent)]) == "no answer in time")
  }

  @Test func `LocalDNS is asked after a second, and its answer is held until the providers' timeout`() {
    let asked: [Event] = [.attempt, .asks(200)]
    #expect(Self.outcome(asked + [.time(999, Self.options())]) == "timer")
    #expect(Self.outcome(asked + [.time(1000, Self.options())]) == "ask localdns, timer")
    #expect(Self.outcome(asked + [.time(1000, Self.options(fallsBack: false))]) == "timer")
    #expect(Self.outcome(asked + [.time(1000, Self.options(), isQueued: true)]) == "timer")
    #expect(Self.outcome(Self.held) == "timer")
    #expect(Self.outcome(Self.held + [.time(1999, Self.options())]) == "timer")
    #expect(Self.outcome(Self.held + [.time(2000, Self.options())]) == "localdns")
    #expect(Self.outcome(Self.held + [.ends(Self.provided)]) == "provider")
    #expect(Self.outcome(Self.held + [.ends(Self.failure(.nextUpstream))]) == "localdns")
  }

  @Test func `a provider's reply and our own limits drop what LocalDNS has said`() {
    for consequence in [Consequence.verdict, .limit, .ours] {
      let failure = Self.failure(consequence)
      #expect(Self.outcome(Self.held + [.ends(failure)]) == "\(consequence)")
      #expect(Self.outcome(Self.held + [.attempt, .ends(failure), .ends(Self.silent)]) == "no answer in time")
      let late: [Event] = [.attempt, .attempt, .asks(200), .fails(failure), .ends(Self.local)]
      #expect(Self.outcome(late) == "wait")
      #expect(Self.outcome(late + [.ends(Self.local)]) == "one of our own limits")
    }
  }

  @Test func `a silent provider is not waited for, but for the time of the last one`() {
    let impatient = Self.options(isImpatient: true)
    let asked: [Event] = [.attempt, .asks(200, isImpatient: true)]
    #expect(Self.outcome(asked + [.time(199, impatient)]) == "timer")
    #expect(Self.outcome(asked + [.time(200, impatient)]) == "ask localdns, timer")
    let next = Self.options(isImpatient: true, hasNext: true)
    #expect(Self.outcome(asked + [.time(200, next)]) == "ask next, timer")
    let both = asked + [.time(200, next), .asks(150, isImpatient: true), .time(350, impatient), .asksLocalDNS]
    #expect(Self.outcome(both + [.localDNS(Self.local, isImpatient: true)]) == "timer")
    #expect(Self.outcome(both + [.localDNS(Self.local, isImpatient: true), .time(351, impatient)]) == "localdns")
    // LocalDNS answers before the last provider has had its time.
    let early: [Event] = [
      .attempt, .asks(200), .time(1000, Self.options()), .asksLocalDNS, .asks(300, isImpatient: true),
      .localDNS(Self.local, isImpatient: true),
    ]
    #expect(Self.outcome(early + [.time(1000, impatient)]) == "timer")
    #expect(Self.outcome(early + [.time(1000, impatient), .due(impatient)]) == "1300")
    #expect(Self.outcome(early + [.time(1000, impatient), .time(1300, impatient)]) == "localdns")
  }

  @Test func `LocalDNS's answer waits until the last provider was asked`() {
    let next = Self.options(hasNext: true)
    #expect(Self.outcome(Self.held + [.time(2000, next)]) == "ask next, timer")
    #expect(Self.outcome(Self.held + [.time(2000, next), .due(Self.options())]) == "2150")
    #expect(Self.outcome(Self.held + [.time(2000, next), .time(2001, next)]) == "timer")
    #expect(Self.outcome(Self.held + [.time(2000, next), .time(2150, Self.options())]) == "localdns")
    let asked = Self.held + [.time(2000, next), .asks(300), .time(2150, Self.options())]
    #expect(Self.outcome(asked) == "timer")
    #expect(Self.outcome(asked + [.time(2300, Self.options())]) == "localdns")
  }

  @Test func `the last moment`() {
    let asked: [Event] = [.attempt, .attempt, .asks(200)]
    #expect(Self.outcome(asked + [.time(4399, Self.options(fallsBack: false))]) == "timer")
    #expect(Self.outcome(asked + [.time(4400, Self.options())]) == "no answer in time")
    #expect(Self.outcome(asked + [.fails(Self.failure(.verdict)), .time(4400, Self.options())]) == "verdict")
    let failed = asked + [.fails(Self.failure(.nextServer)), .time(4400, Self.options())]
    #expect(Self.outcome(failed) == "no answer in time")
    #expect(Self.outcome(asked + [.isUnsure, .time(4400, Self.options())]) == "provider")
    #expect(Self.outcome(Self.held + [.time(4400, Self.options(hasNext: true))]) == "localdns")
    #expect(Self.outcome(asked + [.given, .time(4400, Self.options())]) == "")
  }

  @Test func `stale data`() {
    let asked: [Event] = [.attempt, .stale(300)]
    #expect(Self.outcome(asked + [.time(299, Self.options())]) == "timer")
    #expect(Self.outcome(asked + [.time(300, Self.options(), hasStale: true)]) == "no answer in time")
    #expect(Self.outcome(asked + [.time(300, Self.options())]) == "timer")
    let held: [Event] = Self.held + [.stale(100)]
    #expect(Self.outcome(held + [.time(1100, Self.options(hasNext: true), hasStale: true)]) == "localdns")
  }

  @Test func `what follows the last provider`() {
    #expect(Self.outcome([.asks(200), .fails(Self.failure(.nextServer))]) == "localdns after nextServer")
    #expect(Self.outcome([.asks(200), .asks(200), .fails(Self.failure(.nextServer))]) == "nextServer")
    // The first failure that excludes LocalDNS counts, else the last one.
    let failures: [(Consequence, Consequence, String)] = [
      (.verdict, .nextServer, "verdict"), (.verdict, .limit, "verdict"), (.limit, .verdict, "limit"),
      (.nextServer, .verdict, "verdict"), (.nextServer, .notAsked, "localdns after notAsked"),
    ]
    for (first, second, expected) in failures {
      let events: [Event] = [.asks(200), .fails(Self.failure(first)), .asks(200), .fails(Self.failure(second))]
      #expect(Self.outcome(events) == expected)
    }
    #expect(Self.outcome([.asks(200), .isUnsure]) == "provider")
    #expect(Self.outcome([.asks(200), .asksLocalDNS, .isUnsure]) == "wait")
    // LocalDNS has answered already.
    #expect(Self.outcome(Self.held + [.isUnsure]) == "wait")
    #expect(Self.outcome(Self.held + [.isUnsure, .ends(Self.silent)]) == "localdns")
  }

  @Test func `NXDOMAIN below a search domain`() {
    #expect(Self.outcome([.attempt, .denies], isSearched: true) == "ask localdns")
    #expect(Self.outcome([.attempt, .asksLocalDNS, .denies], isSearched: true) == "wait")
    #expect(Self.outcome(Self.held + [.denies], isSearched: true) == "localdns")
    let denied: [Event] = [
      .attempt, .asks(200), .time(1000, Self.options()), .asksLocalDNS, .localDNS(Self.localDenied),
    ]
    #expect(Self.outcome(denied + [.denies], isSearched: true) == "confirmed")
    let failed = denied.dropLast() + [.localDNS(Self.silent), .denies]
    #expect(Self.outcome(Array(failed), isSearched: true) == "unconfirmed")
    // What was dropped after another provider's verdict is asked for again.
    let dropped = Self.held + [.attempt, .ends(Self.failure(.verdict)), .denies]
    #expect(Self.outcome(dropped, isSearched: true) == "ask localdns")
    #expect(Self.outcome(dropped, isSearched: false) == "confirmed")
    // What another provider's limit had excluded counts again.
    let limited: [Event] = [.attempt, .attempt, .ends(Self.failure(.limit)), .denies, .ends(Self.local)]
    #expect(Self.outcome(limited, isSearched: true) == "localdns")
    let ignored: [Event] = [
      .attempt, .attempt, .attempt, .asksLocalDNS, .ends(Self.failure(.limit)), .localDNS(Self.local), .denies,
    ]
    #expect(Self.outcome(ignored, isSearched: true) == "ask localdns")
    #expect(Self.outcome(ignored, isSearched: false) == "confirmed")
    // Held until LocalDNS has ended.
    let held: [Event] = [.attempt, .attempt, .asksLocalDNS, .denies, .ends(Self.silent)]
    #expect(Self.outcome(held + [.localDNS(Self.silent)], isSearched: true) == "provider's nxdomain")
    #expect(Self.outcome(held + [.localDNS(Self.local)], isSearched: true) == "localdns")
  }

  @Test func `a refresh becomes a question when a client joins`() {
    #expect(Self.outcome([.attempt, .joins], isRefresh: true) == "first")
    #expect(Self.outcome([.attempt, .joins, .joins], isRefresh: true) == "another")
    #expect(Self.outcome([.attempt, .time(4400, Self.options())], isRefresh: true) == "")
    #expect(Self.outcome([.attempt, .refreshed(Self.silent)], isRefresh: true) == "no answer in time")
    #expect(Self.outcome([.attempt, .joins, .refreshed(Self.silent)], isRefresh: true) == "ask upstreams")
    #expect(Self.outcome([.attempt, .joins, .given, .refreshed(Self.silent)], isRefresh: true) == "no answer in time")
    #expect(Self.outcome([.attempt, .joins, .refreshed(Self.provided)], isRefresh: true) == "provider")
    let two: [Event] = [.attempt, .joins, .attempt, .refreshed(Self.silent)]
    #expect(Self.outcome(two, isRefresh: true) == "wait")
  }

  @Test func `a place that is lost, and another network`() {
    #expect(Self.outcome([.attempt, .isDisplaced]) == "too many questions in flight")
    #expect(Self.outcome(Self.held + [.isDisplaced]) == "too many questions in flight")
    #expect(Self.outcome([.attempt, .asks(200), .asksLocalDNS, .isUnsure, .isDisplaced]) == "provider")
    #expect(Self.outcome(Self.held + [.network(1)]) == "wait")
    #expect(Self.outcome(Self.held + [.network(2)]) == "timer")
    #expect(Self.outcome(Self.held + [.network(2), .time(1001, Self.options())]) == "ask localdns, timer")
    #expect(Self.outcome([.attempt, .given, .given]) == "late")
  }

  @Test func `when the timer fires`() {
    let usual = Self.options()
    let none = Self.options(fallsBack: false)
    let impatient = Self.options(isImpatient: true)
    #expect(Self.outcome([.attempt, .due(usual)]) == "4400")
    #expect(Self.outcome([.attempt, .asks(200), .due(usual)]) == "1000")
    #expect(Self.outcome([.attempt, .asks(200), .due(none)]) == "4400")
    #expect(Self.outcome([.attempt, .asks(1200), .due(usual)]) == "1200")
    #expect(Self.outcome([.attempt, .asks(200, isImpatient: true), .due(impatient)]) == "200")
    #expect(Self.outcome([.attempt, .asks(200), .connects(700), .due(usual)]) == "1700")
    let late: [Event] = [.attempt, .asks(200, isImpatient: true), .connects(700, isImpatient: true)]
    #expect(Self.outcome(late + [.due(impatient)]) == "200")
    #expect(Self.outcome([.attempt, .stale(300), .due(usual)]) == "300")
    #expect(Self.outcome(Self.held + [.due(usual)]) == "2000")
    #expect(Self.outcome(Self.held + [.network(2), .due(usual)]) == "1000")
  }

  @Test func `what comes late, and the end`() {
    let start = BootInstant(nanoseconds: 0)
    var state = FetchState(isRefresh: false, network: 1, now: start)
    #expect(!state.excludesLateLocal)
    var answered = state
    _ = answered.markAnswered(isAnswer: false)
    #expect(!answered.excludesLateLocal)
    _ = answered.markAnswered(isAnswer: true)
    #expect(answered.excludesLateLocal)
    var left = [state.leave()]
    _ = state.displace()
    left += [state.leave(), state.leave()]
    #expect(left == [false, true, false])
    state.providerFailed(Self.failure(.limit), isSearched: false)
    #expect(state.excludesLateLocal)
    let given: [Event] = [.attempt, .attempt, .asksLocalDNS, .given, .localDNS(Self.local)]
    #expect(Self.outcome(given) == "localdns")
    // The only provider is asked twice: its first failure decides nothing if LocalDNS may be asked.
    var alone = FetchState(isRefresh: false, network: 1, now: start)
    alone.providerStarted()
    guard case .withoutProvider(nil, nil) = alone.afterProviders(hasSeveral: false) else {
      Issue.record("a result without a failure")
      return
    }
    alone.providerFailed(Self.failure(.nextServer), isSearched: false)
    guard case .result(let result) = alone.afterProviders(hasSeveral: false) else {
      Issue.record("no result")
      return
    }
    #expect(Self.word(result) == "nextServer")
  }

  @Test func `a repeated query starts another attempt after a second, three at most, and none with stale data`() {
    let start = BootInstant(nanoseconds: 0)
    var state = FetchState(isRefresh: false, network: 1, now: start)
    state.attemptBegins(now: start)
    #expect(!state.mayRepeat(now: start + .milliseconds(999)))
    #expect(state.mayRepeat(now: start + .seconds(1)))
    var stale = state
    stale.giveStaleData(at: start + .seconds(2))
    #expect(!stale.mayRepeat(now: start + .seconds(1)))
    for _ in 0..<2 { state.attemptBegins(now: start) }
    #expect(!state.mayRepeat(now: start + .seconds(3)))
  }
}
