// ProviderJudgement.swift -- what transfers and handshakes say about a provider, and the handshakes themselves.
//
// Resolver's loop only. `ServerOrder`, `Patience` and `AccountPause` decide; this file carries events to them.

import Configuration
import DNSWire
import EventLoop
import HTTPClient
import HTTPDNS
import Logging

extension HTTPDNSProvider {
  /// Anything that comes from a server within this time after a request, or three times the usual time, is no silence.
  private static let shortestSilence = Duration.milliseconds(300)
  /// After a refresh without a verdict the next ones wait for one, at most this long: clients' questions find out.
  private static let refreshPause = Duration.seconds(5)

  private var silence: Duration { max(HTTPDNSProvider.shortestSilence, patience.usual() * 3) }

  /// A handshake has several round trips, whose time is not known before the first verdict.
  private static let roundTripsOfHandshake = 5

  /// How long a handshake with a silent server may take.
  private var handshakeTime: Duration {
    let usual = patience.median.map { $0 * HTTPDNSProvider.roundTripsOfHandshake } ?? ServerOrder.longestHandshake
    return min(max(ServerOrder.interval, usual), ServerOrder.longestHandshake)
  }

  // MARK: Transfers

  /// A request goes to a server.
  func isSent(to server: ProviderServer, _ transport: any HTTPTransport, _ asking: any QuestionInFlight) {
    patience.sent(asking.domain, askedAt: asking.startedAt)
    guard let index = place(of: server) else { return }
    order.sent(to: index, heardAt: transport.heardAt, now: loop.now)
    if serverTimer.deadline.map({ $0 > loop.now + silence }) ?? true { watchServers() }
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
        pauses(for: length, because: text, remedy(for: report))
      }
      if report.isOfAccount || report.kind == .quota, pause.left(now: loop.now) != nil { failure.isLogged = true }
    }
    if failure.consequence == .nextServer, let index = place(of: server) {
      order.failed(index, sentAt: sentAt, now: loop.now)
    }
    logStanding()
    return failure
  }

  /// Whether background work may use it.
  var isFit: Bool {
    guard pause.left(now: loop.now) == nil, !order.isOutOfReach, hasUnits else { return false }
    return loop.now >= nextRefresh && limit.hasSpare(now: loop.now.nanoseconds)
  }

  /// Lets refreshes pause after one without a verdict, if other questions have got no verdict either.
  func refreshHasFailed() {
    if patience.hasSeveralWithout { nextRefresh = loop.now + HTTPDNSProvider.refreshPause }
  }

  private func place(of server: ProviderServer) -> Int? { servers.firstIndex { $0 === server } }

  // MARK: Handshakes

  /// Questions would have gone to servers that are left out.
  func areWanted() {
    order.isWanted(now: loop.now)
    shakeHands(isUrgent: order.isOutOfReach)
  }

  /// The time until the next handshake; nil if none is due.
  var nextHandshake: Duration? { order.nextHandshake(silence: silence, now: loop.now).map { $0 - loop.now } }

  private func watchServers() {
    guard !isRetired, let time = order.nextHandshake(silence: silence, now: loop.now) else { return }
    if let deadline = serverTimer.deadline, deadline <= time { return }
    serverTimer.set(at: time, on: loop, for: self) { $0.shakeHands() }
  }

  private func shakeHands(isUrgent: Bool = false) {
    let due = order.takeHandshakes(silence: silence, time: handshakeTime, isUrgent: isUrgent, now: loop.now) {
      servers[$0].heardAt
    }
    for handshake in due {
      let server = servers[handshake.server]
      Task(executorPreference: loop) { await self.shakeHands(handshake, server) }
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
}
