// ProviderHealth.swift -- what transfers and handshakes say about a provider and its servers, and the handshakes themselves.
//
// The obvious way is to count failures and to call a provider dead after some of them. But a name whose own servers hang looks
// like a dead provider to each of its clients, and any client can own such a name: a few questions for it would switch the
// provider off for all clients. And a provider that was called dead wrongly costs every name its answer. So this code does not
// find out whose fault a failure is. Each observation has the smallest consequence that it can justify:
//
// * A transfer without a verdict sends its own question on, to the next server and then to the next upstream
//   (`Consequence`). Other questions notice nothing.
// * A provider that gives no verdict for two seconds, though several names were asked for, is asked as before. But questions
//   wait for it a short time only before the next upstream is asked as well (`Patience`). The first verdict ends that.
// * A server loses its place as the first one to another one that gives verdicts, never by failures alone (`ServerOrder`).
// * A server is left out only if it cannot be reached: a connection is refused, or it gives no sign of life, in a handshake
//   that is made because requests are unanswered for three times the usual time. No name can cause that. Handshakes carry no
//   request, so they are not billed, and go on until the server is back.
// * A provider is not asked at all only if every server is left out, or if the service itself says something about the account
//   (`AccountPause`): a wrong signature, an account that is switched off, no quota, a request to slow down.
//
// What is bounded: one handshake with a server at a time, with three servers in a second, and fewer after ten minutes without
// a question; one trial in half a minute during a pause. After a refresh without a verdict refreshes wait for five seconds,
// since clients' questions find out by themselves.
//
// The rules are values without clock and loop, with tables as tests. This file carries events to them, makes the handshakes
// that they want, and says what changes. Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import Logging

/// The servers of a provider: which one is asked, which ones are left out, and whether the provider is asked at all.
final class ProviderHealth {
  private(set) var servers: [ProviderServer]
  private let settings: Configuration.Provider
  private let loop: any Loop
  /// Provides the list of servers; nil if the configuration does.
  private let schedule: ServerSchedule?
  private let counters: SharedProviderCounters
  private let note: ProviderNote
  /// Which server is asked, and which ones are left out.
  private var order: ServerOrder
  let timer = OwnedTimer()
  /// Questions that wait until any server can be reached.
  private let arrivals: Waiters
  /// How long a question waits for a verdict.
  private var patience = Patience()
  /// What the provider says about the account.
  private var pause = AccountPause()
  /// Why it pauses, and what helps, human-readable.
  private var pauseReason = (text: "", remedy: "")
  /// Whether it was not asked since its last verdict: it could not be reached, paused, or had no units.
  private var wasAway = false
  /// When background work may use it again after a failure.
  private var nextRefresh = BootInstant(nanoseconds: .min)
  /// The last failure of a question, and what helps, human-readable.
  private var lastFailure: (text: String, advice: String, at: BootInstant)?
  private var logged = Standing()
  private var isRetired = false
  /// Called at the first verdict after a silence.
  var onRecovery: (() -> Void)?

  /// What is logged about a provider when it changes.
  private struct Standing: Equatable {
    var isSilent = false
    var isOutOfReach = false
    /// The number of the server that is asked first.
    var server: Int? = 0
  }

  /// Anything that comes from a server within this time after a request, or three times the usual time, is no silence.
  private static let shortestSilence = Duration.milliseconds(300)
  /// After a refresh without a verdict the next ones wait for one, at most this long: clients' questions find out.
  private static let refreshPause = Duration.seconds(5)
  /// A handshake has several round trips, whose time is not known before the first verdict.
  private static let roundTripsOfHandshake = 5

  /// - Parameter servers: the servers, or those until `schedule` has others.
  init(
    _ settings: Configuration.Provider, _ servers: [ProviderServer], _ schedule: ServerSchedule?,
    _ counters: SharedProviderCounters, on loop: any Loop, note: @escaping ProviderNote
  ) {
    self.settings = settings
    self.servers = servers
    self.schedule = schedule
    self.counters = counters
    self.loop = loop
    self.note = note
    order = ServerOrder(servers: servers.count, settings)
    arrivals = Waiters(on: loop)
  }

  func start() { schedule?.start() }

  /// Switches to these servers. Transfers in flight continue with the old ones.
  func use(_ servers: [ProviderServer]) {
    loop.assertCurrent()
    let wasSwitchedOff = self.servers.isEmpty
    self.servers = servers
    timer.cancel()
    order = ServerOrder(servers: servers.count, settings)
    if servers.isEmpty {
      pause.switchedOff(now: loop.now)
      pauseReason = (ServerSchedule.switchedOffText, ServerSchedule.remedyIfSwitchedOff)
    } else if wasSwitchedOff {
      pause.end()
    }
    arrivals.resumeAll()
  }

  func networkHasChanged() {
    for server in servers { server.networkHasChanged() }
    order.networkHasChanged()
    patience.networkHasChanged(now: loop.now)
    arrivals.resumeAll()
    schedule?.networkHasChanged()
  }

  /// Begins no further handshakes.
  func retire() {
    isRetired = true
    timer.cancel()
  }

  // MARK: Whether and whom to ask

  var pace: UpstreamPace {
    UpstreamPace(isSilent: isSilent, shortPatience: patience.short, verdicts: patience.verdicts)
  }

  /// Whether background work may use it.
  var isFit: Bool { !isPausing && !order.isOutOfReach && loop.now >= nextRefresh }

  var isPausing: Bool { pause.left(now: loop.now) != nil }

  /// The places of the servers in the order in which they are asked.
  var places: [Int] { order.servers }

  /// Whether the first server may be back: it has the short patience to give a verdict to a question of this client.
  func takeReturn(of client: UInt64) -> Bool { order.takeReturn(of: client) }

  /// Why a client's question is not sent during a pause; nil if it is.
  func refusal(of client: UInt64) -> UpstreamFailure? {
    isPausing && !pause.mayTry(client, now: loop.now) ? pausing : nil
  }

  /// Why no server is to be asked; nil if one is, which counts as a trial during a pause. Where no other upstream is left,
  /// waits for a server that can be reached.
  func refusal(of client: UInt64, by deadline: BootInstant, isLastResort: Bool) async -> UpstreamFailure? {
    if order.hasLosses {
      order.isWanted(now: loop.now)
      shakeHands(isUrgent: order.isOutOfReach)
    }
    while order.isOutOfReach {
      let left = deadline - loop.now - HTTPDNSProvider.shortestAttempt
      guard isLastResort, left > .zero, !servers.isEmpty else { return outOfReach }
      await arrivals.wait(atMost: left) { order.isOutOfReach }
    }
    return isPausing && !pause.takeTrial(client, now: loop.now) ? pausing : nil
  }

  func wasNotAsked() { wasAway = true }

  private var isSilent: Bool { patience.isSilent(now: loop.now) }

  private var pausing: UpstreamFailure {
    var refusal = UpstreamFailure(.other, "pausing: \(pauseReason.text)", .notAsked)
    refusal.advice = pauseReason.remedy
    refusal.isLogged = true
    return refusal
  }

  /// The failure of a provider whose servers are all left out.
  private var outOfReach: UpstreamFailure {
    var failure = UpstreamFailure(.noReachableAuthority, "unreachable: \(lossReason)", .notAsked)
    failure.advice = order.loss?.advice ?? ""
    return failure
  }

  /// Why no server can be reached, human-readable.
  private var lossReason: String {
    guard let loss = order.loss else { return ServerSchedule.switchedOffText }
    let others = servers.count > 1 ? " and the others" : ""
    return order.losses.first { $0.loss == loss }.map { "\(servers[$0.server])\(others): \(loss.reason)" }
      ?? loss.reason
  }

  // MARK: Transfers

  /// A request goes to a server.
  func isSent(to server: ProviderServer, _ transport: any HTTPTransport, _ asking: any QuestionInFlight) {
    patience.sent(asking.domain, askedAt: asking.startedAt)
    guard let index = place(of: server) else { return }
    order.sent(to: index, heardAt: transport.heardAt, now: loop.now)
    if timer.deadline.map({ $0 > loop.now + silence }) ?? true { watchServers() }
  }

  /// A server has given a verdict.
  func hasVerdict(of server: ProviderServer, on asking: any QuestionInFlight, sentAt: BootInstant) {
    let wasSilent = isSilent
    let hasRecovered = patience.gaveVerdict(
      on: asking.domain, of: asking.client, after: loop.now - sentAt, wasAway: wasAway, now: loop.now)
    wasAway = false
    nextRefresh = loop.now
    pause.gaveVerdict(sentAt: sentAt, now: loop.now)
    if let index = place(of: server), order.gaveVerdict(index, endsSilence: wasSilent, now: loop.now) {
      counters.values.demotions.count(.server)
    }
    guard hasRecovered else { return }
    logStanding()
    onRecovery?()
  }

  /// A transfer has ended without a verdict.
  ///
  /// - Returns: the failure, which counts as logged if it belongs to a pause.
  func hasFailed(
    _ failure: UpstreamFailure, at server: ProviderServer, _ asking: any QuestionInFlight, sentAt: BootInstant
  ) -> UpstreamFailure {
    var failure = failure
    if let transport = failure.transport {
      if ![.timeout, .busy, .cancelled].contains(transport.kind), let index = place(of: server) { order.isOver(index) }
      if transport.kind == .calm, let length = pause.askedForCalm(now: loop.now) {
        pauses(for: length, because: "it asks for fewer requests at a time", failure.advice)
      }
      if transport.isOutOfReach { lose(server, because: transport) }
    }
    if let report = failure.report {
      if let length = pause.refused(report, on: asking.domain, now: loop.now) {
        let text = report.kind == .quota ? "\(HTTPDNSFailure.quota)" : report.text(settings.kind)
        pauses(for: length, because: text, failure.advice)
      }
      if report.isOfAccount || report.kind == .quota, isPausing { failure.isLogged = true }
    }
    if failure.consequence == .nextServer, let index = place(of: server) {
      order.failed(index, sentAt: sentAt, now: loop.now)
    }
    logStanding()
    return failure
  }

  /// Notes the failure of a server to which a question was put.
  ///
  /// - Returns: the same with the server's name, and with the advice that fits.
  func recordFailure(_ failure: UpstreamFailure, at server: ProviderServer) -> UpstreamFailure {
    var failure = failure
    failure.reason = "\(server): \(failure.reason)"
    // A server that answers other names was found and reached.
    if failure.transport?.kind == .timeout, !patience.hasSeveralWithout { failure.advice = "" }
    if !failure.isCancelled { lastFailure = (failure.reason, failure.advice, loop.now) }
    return failure
  }

  /// Lets refreshes pause after one without a verdict, if other questions have got no verdict either.
  func refreshHasFailed() {
    if patience.hasSeveralWithout { nextRefresh = loop.now + ProviderHealth.refreshPause }
  }

  /// Begins to pause, and logs a remedy.
  private func pauses(for length: Duration, because text: String, _ remedy: String) {
    counters.values.demotions.count(.aside)
    pauseReason = (text, remedy)
    let help = remedy.isEmpty ? "" : "; \(remedy)"
    note(.warning, "provider \(settings.name): \(text); pausing for \(length.components.seconds) s\(help)")
  }

  private func place(of server: ProviderServer) -> Int? { servers.firstIndex { $0 === server } }

  // MARK: Handshakes

  private var silence: Duration { max(ProviderHealth.shortestSilence, patience.usual * 3) }

  /// How long a handshake with a silent server may take.
  private var handshakeTime: Duration {
    let usual = patience.median.map { $0 * ProviderHealth.roundTripsOfHandshake } ?? ServerOrder.longestHandshake
    return min(max(ServerOrder.interval, usual), ServerOrder.longestHandshake)
  }

  private func watchServers() {
    guard !isRetired, let time = order.nextHandshake(silence: silence, now: loop.now) else { return }
    if let deadline = timer.deadline, deadline <= time { return }
    timer.set(at: time, on: loop, for: self) { $0.shakeHands() }
  }

  private func shakeHands(isUrgent: Bool = false) {
    let due = order.takeHandshakes(silence: silence, time: handshakeTime, isUrgent: isUrgent, now: loop.now) {
      servers[$0].heardAt
    }
    for handshake in due {
      let server = servers[handshake.server]
      loop.startTask { await self.shakeHands(handshake, server) }
    }
    watchServers()
  }

  private func shakeHands(_ handshake: ServerOrder.Handshake, _ server: ProviderServer) async {
    let began = loop.now
    counters.values.handshakes += 1
    let failure = await server.handshake(timeout: handshake.time, on: loop)
    guard let index = place(of: server) else { return }
    let isAlive = failure == nil || server.heardAt > began
    order.ended(index, isAlive, now: loop.now)
    if isAlive {
      arrivals.resumeAll()
    } else if let failure, failure.isOutOfReach || failure.kind == .timeout {
      lose(server, because: failure)
    }
    logStanding()
    watchServers()
  }

  private func lose(_ server: ProviderServer, because failure: HTTPFailure) {
    let moment = ServerOrder.moment(isConnected: server.isConnected)
    guard let index = place(of: server), failure.kind == .timeout || server.heardAt + moment < loop.now else { return }
    let loss = ServerOrder.Loss(
      since: loop.now, reason: failure.description, advice: failure.remedy(settings), hasNoRoute: failure.hasNoRoute)
    let isNews = order.lose(index, loss)
    server.connectionFailed(now: loop.now)
    if order.isOutOfReach { schedule?.allHaveFailed() }
    guard isNews else { return }
    server.abandon(HTTPFailure(.unreachable, failure.reason))
    counters.values.demotions.count(order.isOutOfReach ? .down : .server)
    watchServers()
  }

  // MARK: For the operator

  /// Describes whether the provider is used. Call it after `ProviderLimits.describe`, whose `noUnits` goes before silence.
  func describe(_ report: inout ProviderReport) {
    if let lastFailure {
      report.lastFailure = lastFailure.text
      report.lastFailureAge = loop.now - lastFailure.at
    }
    report.server = order.first.map { "\(servers[$0])" }
    func unixTime(_ instant: BootInstant) -> Int64 { loop.wallTime - (loop.now - instant).components.seconds }
    if let left = pause.left(now: loop.now) {
      report.advice = pauseReason.remedy
      report.state = .pausing(pauseReason.text, until: loop.wallTime + (left.nanoseconds + 999_999_999) / 1_000_000_000)
    } else if order.isOutOfReach {
      report.state = .unreachable(since: order.loss.map { unixTime($0.since) }, lossReason)
      report.advice = outOfReach.advice
      report.nextAttempt = order.nextHandshake(silence: silence, now: loop.now).map { $0 - loop.now }
    } else if report.state == .up, isSilent, let since = patience.silentSince {
      report.state = .noAnswers(since: unixTime(since))
      report.advice = lastFailure?.advice ?? ""
    }
  }

  /// Logs at level debug what has changed since the last call.
  private func logStanding() {
    let standing = Standing(isSilent: isSilent, isOutOfReach: order.isOutOfReach, server: order.first)
    guard standing != logged else { return }
    let wasDown = logged.isSilent || logged.isOutOfReach
    logged = standing
    let text: String
    if standing.isOutOfReach {
      text = outOfReach.reason
    } else if standing.isSilent {
      text = "no answers"
    } else {
      let server = standing.server.map { "\(servers[$0])" } ?? "none"
      text = "\(wasDown ? "is back; " : "")\(server) is asked first"
    }
    note(.debug, "provider \(settings.name): \(text)")
  }
}

extension ServerOrder {
  init(servers: Int, _ settings: Configuration.Provider) {
    self.init(
      count: servers, attemptsBeforeSwitch: settings.attemptsBeforeSwitch, returnToFirst: settings.returnToFirst)
  }
}
