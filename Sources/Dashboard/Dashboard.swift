// Dashboard.swift -- the page at `/dashboard`: who may ask for what, and the answers.
//
//   GET    /dashboard, /dashboard/app.js …   the files of the page: everybody
//   GET    /dashboard/history?span=10m       rows of figures: everybody
//   GET    /dashboard/events                 figures as they come: everybody; names: a session
//   GET    /dashboard/queries                queries as they are answered: a session that may
//   POST   /dashboard/session                a code of `httpdnsd dashboard` for a token; DELETE ends the session
//   POST   /dashboard/action                 flush, refresh, report-bad: a session
//
// Figures are those of `/metrics`. A token comes in the Authorization field alone, which no browser sends by itself, and only
// pages of this origin may send requests that change something. Loop's thread only.

import Control
import EventLoop
import Forwarder
import HTTPMessage
import HTTPServer
import JSON
import Persistence
import Upstreams

/// What the dashboard shows, and with what it acts.
package struct DashboardSources {
  /// The version of the program.
  package var version: String
  package var statistics: () -> ForwarderStatistics
  /// `refresh.budget_per_minute` and `refresh.budget_per_day` of the running configuration.
  package var refreshBudgets: () -> (minute: Int, day: Int)
  package var actions: any ControlActions
  /// Streams queries to readers, those of the control socket among them.
  package var tails: TailService
  /// Writes what a session has done to the log.
  package var note: (String) -> Void
  /// Writes a refusal to the log, at most once a minute for each reason.
  package var warn: (_ reason: String, _ text: String) -> Void
  /// Returns nanoseconds since 1970.
  package var wallClock: () -> Int64

  package init(
    version: String, statistics: @escaping () -> ForwarderStatistics,
    refreshBudgets: @escaping () -> (minute: Int, day: Int), actions: any ControlActions, tails: TailService,
    note: @escaping (String) -> Void, warn: @escaping (_ reason: String, _ text: String) -> Void,
    wallClock: @escaping () -> Int64
  ) {
    (self.version, self.statistics, self.refreshBudgets) = (version, statistics, refreshBudgets)
    (self.actions, self.tails, self.note, self.warn, self.wallClock) = (actions, tails, note, warn, wallClock)
  }
}

/// Answers requests below `/dashboard`. Exists while `web.dashboard` is true.
package final class Dashboard {
  /// The path of the page, before which all its other paths begin.
  package static let path = "/dashboard"
  /// The most streams at once, those of queries among them.
  static let mostStreams = 8
  /// The longest body of a request.
  static let mostOctets = 4096
  /// The time between two events with names, and between two comments to readers of queries.
  private static let pause = Duration.seconds(10)

  private let loop: any Loop
  private let sources: DashboardSources
  private let files = PageFile.all()
  private let sampler: Sampler
  private let viewers: Viewers
  private var sessions = Sessions()
  private var readers: [TailService.Tail] = []
  private let (namesTimer, beatTimer) = (OwnedTimer(), OwnedTimer())
  private var isMakingNames = false
  /// Those who wait for the rows of a span, which are made once for all of them.
  private var askers: [HistorySpan: [HTTPServerReply]] = [:]

  package init(on loop: any Loop, _ sources: DashboardSources) {
    self.loop = loop
    self.sources = sources
    sampler = Sampler(on: loop, sources.statistics, wallClock: sources.wallClock)
    viewers = Viewers(on: loop)
    viewers.changed = { [weak self] in self?.followViewers() }
    sampler.report = { [weak self] in self?.send($0, $1) }
    sampler.minuteHasPassed = { [weak self] in self?.endOldStreams() }
    sampler.clockHasJumped = { [weak self] in
      self?.viewers.sendToAll(PageEvent.notice("The clock was set.", again: true, history: true))
    }
  }

  /// Whether a path is `/dashboard` or below it.
  package static func has(_ path: String) -> Bool { path == Dashboard.path || path.hasPrefix("\(Dashboard.path)/") }

  /// Makes a code with which a page signs in, for a user of the control socket.
  package func makeCode(for user: UInt32) -> String { sessions.makeCode(for: user, now: loop.now) }

  /// Ends all streams and sessions.
  ///
  /// - Parameters:
  ///   - reason: a sentence.
  ///   - again: whether pages may ask for another stream.
  package func end(_ reason: String, again: Bool) {
    let notice = PageEvent.notice(reason, again: again)
    viewers.endAll(notice)
    for reader in readers { reader.end(notice) }
    (readers, sessions) = ([], Sessions())
  }

  // MARK: - Requests

  /// Answers a request whose path is the dashboard's.
  ///
  /// - Parameter hosts: knows the names under which the page may be used.
  package func handle(_ request: HTTPServerRequest, _ reply: HTTPServerReply, _ hosts: HostCheck) {
    do throws(DashboardRefusal) {
      let host = try PageRequest.host(of: request, hosts)
      let part = request.path.dropFirst(Dashboard.path.count + 1)
      if let endpoint = Endpoint(rawValue: String(part)) {
        try PageRequest.check(request, host, hosts, endpoint)
        try answer(request, reply, endpoint)
      } else {
        try answerFile(request, reply, part.isEmpty ? PageFile.index : String(part))
      }
    } catch { Dashboard.refuse(reply, error) }
  }

  private func answer(
    _ request: HTTPServerRequest, _ reply: HTTPServerReply, _ endpoint: Endpoint
  ) throws(DashboardRefusal) {
    switch endpoint {
    case .history: try answerHistory(request, reply)
    case .events: try beginEvents(request, reply)
    case .queries: try beginQueries(request, reply)
    case .session:
      if request.method == .delete { try endSession(request, reply) } else { try beginSession(request, reply) }
    case .action: try act(request, reply)
    }
  }

  private func answerFile(
    _ request: HTTPServerRequest, _ reply: HTTPServerReply, _ name: String
  ) throws(DashboardRefusal) {
    guard let file = files.first(where: { $0.name == name }) else {
      throw DashboardRefusal(404, "this version has no such page")
    }
    guard request.method == .get || request.method == .head else { throw .method("GET, HEAD") }
    let fields = [HTTPField("ETag", file.tag), HTTPField("Cache-Control", "no-cache")]
    if request.field("If-None-Match")?.contains(file.tag) ?? false {
      return Dashboard.send(reply, 304, file.contentType, [], fields)
    }
    Dashboard.send(reply, 200, file.contentType, file.octets, fields)
  }

  private func answerHistory(_ request: HTTPServerRequest, _ reply: HTTPServerReply) throws(DashboardRefusal) {
    let text = request.query ?? ""
    guard text.hasPrefix("span="), let span = HistorySpan(rawValue: String(text.dropFirst(5))) else {
      let spans = HistorySpan.allCases.map(\.rawValue).joined(separator: ", ")
      throw DashboardRefusal(400, "span= takes one of \(spans)")
    }
    askers[span, default: []].append(reply)
    guard askers[span]?.count == 1 else { return }
    let statistics = sources.statistics()
    let history = History(span, sampler, now: loop.now)
    let limits = Dictionary(
      statistics.providers.map { ($0.name, $0.unitsPerDay) }, uniquingKeysWith: { first, _ in first })
    let head = [
      ("since", FigureText.time(statistics.startedAt, history.offset)), ("number", "\(history.number)"),
      ("states", PageRequest.states), ("now", present(statistics)),
    ]
    loop.startTask { [self] in
      // A day of sixteen providers takes tens of milliseconds.
      let body = await BlockingTask.value("history", on: loop) {
        Array(JSONText.object(head + history.members(limits: limits)).utf8)
      }
      for reply in askers.removeValue(forKey: span) ?? [] { Dashboard.sendData(reply, body) }
    }
  }

  // MARK: - Streams

  private func beginEvents(_ request: HTTPServerRequest, _ reply: HTTPServerReply) throws(DashboardRefusal) {
    let session = try session(of: request)
    try makeRoom()
    let viewer = viewers.begin(reply, PageRequest.streamFields, session)
    sendMissed(after: request.field("Last-Event-ID"), to: viewer)
    followViewers()
    if session != nil { makeNames() }
  }

  /// Sends the samples after the one with that number. If some of them are no longer here, or they are too many for one piece, sends
  /// nothing: the page sees the gap and asks for the rows.
  private func sendMissed(after id: String?, to viewer: Viewers.Viewer) {
    // Text that is no number means from now on.
    guard let last = id.flatMap({ UInt64($0) }), let missed = sampler.shorts.samples(after: last) else { return }
    let events = missed.map { number, sample in
      PageEvent.event("sample", id: number, FigureText.sample(sample, offset: sampler.offset, now: nil))
    }
    guard events.reduce(0, { $0 + $1.count }) <= Viewers.longestBacklog / 4 else { return }
    viewers.send(events.flatMap(\.self), to: viewer)
  }

  private func beginQueries(_ request: HTTPServerRequest, _ reply: HTTPServerReply) throws(DashboardRefusal) {
    let session = try requiredSession(of: request)
    guard sources.tails.admits(session.user) else { throw DashboardRefusal(403, TailService.help) }
    try makeRoom()
    do throws(ControlRefusal) {
      let reader = try sources.tails.begin(
        TailRequest(request), reply, .events(PageRequest.streamFields), for: session.user,
        backlog: Viewers.longestBacklog
      ) { [weak self] in self.map { $0.sessions.has(session, now: $0.loop.now) } ?? false }
      readers.append(reader)
      beat()
    } catch { throw DashboardRefusal(error.status, error.reason) }
  }

  /// Tells readers of queries that the daemon is there, again and again while there are some.
  private func beat() {
    readers.removeAll { !$0.isOpen }
    guard !readers.isEmpty else { return beatTimer.cancel() }
    beatTimer.set(after: Dashboard.pause, on: loop, for: self) {
      for reader in $0.readers { reader.beat() }
      $0.beat()
    }
  }

  private func makeRoom() throws(DashboardRefusal) {
    readers.removeAll { !$0.isOpen }
    guard viewers.count + readers.count < Dashboard.mostStreams else {
      throw DashboardRefusal(503, "\(Dashboard.mostStreams) pages are open, which is the limit; close one of them")
    }
  }

  /// Samples are taken while a page is open, and names are read while one has a session.
  private func followViewers() {
    if viewers.count == 0 { sampler.unwatch() } else { sampler.watch() }
    if !viewers.hasSessions { namesTimer.cancel() }
  }

  /// Ends streams that are too old, and those of sessions that no longer exist.
  private func endOldStreams() {
    viewers.endOld { sessions.has($0, now: loop.now) }
    for reader in readers { reader.endIfRefused(PageEvent.signedOut) }
  }

  private func send(_ sample: Sample, _ statistics: ForwarderStatistics) {
    let text = FigureText.sample(sample, offset: sampler.offset, now: present(statistics))
    viewers.sendToAll(PageEvent.event("sample", id: sampler.shorts.number, text))
  }

  private func present(_ statistics: ForwarderStatistics) -> String {
    let settings = FigureText.Settings(version: sources.version, refreshBudgets: sources.refreshBudgets())
    return FigureText.now(statistics, settings, offset: sampler.offset, readers: sources.tails.count)
  }

  /// Sends the names to all sessions, and again after a pause.
  private func makeNames() {
    endOldStreams()
    guard viewers.hasSessions else { return }
    namesTimer.set(after: Dashboard.pause, on: loop, for: self) { $0.makeNames() }
    guard !isMakingNames else { return }
    isMakingNames = true
    loop.startTask { [self] in
      let names = await sources.actions.names()
      let overview = await sources.actions.overview(busiest: NamesText.entries)
      let numbers = await sources.actions.numbers()
      let text = NamesText(
        names: names.reports, overview: overview, numbers: numbers, now: sources.wallClock() / 1_000_000_000)
      let event = await BlockingTask.value("names", on: loop) { PageEvent.event("names", text.json) }
      isMakingNames = false
      endOldStreams()
      viewers.sendToSessions(event)
    }
  }

  // MARK: - Sessions

  /// Returns the session whose token a request bears; nil without a token.
  ///
  /// - Throws: status 401 for a token without a session.
  private func session(of request: HTTPServerRequest) throws(DashboardRefusal) -> Sessions.Session? {
    guard request.field("Authorization") != nil else { return nil }
    guard let token = request.bearerToken, let session = sessions.session(of: token, now: loop.now) else {
      throw .noSession
    }
    return session
  }

  private func requiredSession(of request: HTTPServerRequest) throws(DashboardRefusal) -> Sessions.Session {
    guard let session = try session(of: request) else { throw .noSession }
    return session
  }

  private func beginSession(_ request: HTTPServerRequest, _ reply: HTTPServerReply) throws(DashboardRefusal) {
    let code = try PageRequest.code(request.body)
    guard let (token, session) = sessions.begin(with: code, now: loop.now) else {
      sources.warn("wrong code", "dashboard: refused a code that is wrong, used or too old")
      throw DashboardRefusal(401, "the code is wrong, used or too old: run `httpdnsd dashboard` again")
    }
    // It may have taken the place of another one.
    endOldStreams()
    sources.note("dashboard: user \(session.user) has signed in")
    let body = JSONText.object([
      "token": JSONText.string(token), "may_tail": "\(sources.tails.admits(session.user))",
      "ends": FigureText.time(session.end, sampler.offset),
    ])
    Dashboard.sendData(reply, Array(body.utf8))
  }

  private func endSession(_ request: HTTPServerRequest, _ reply: HTTPServerReply) throws(DashboardRefusal) {
    sessions.end(try requiredSession(of: request))
    endOldStreams()
    Dashboard.sendData(reply, Array("{}".utf8))
  }

  // MARK: - Actions

  private func act(_ request: HTTPServerRequest, _ reply: HTTPServerReply) throws(DashboardRefusal) {
    let session = try requiredSession(of: request)
    let action = try PageRequest.action(request.body)
    sources.note("dashboard: user \(session.user): \(action.words)")
    loop.startTask { [self] in
      let (status, text) = await action.answer(from: sources.actions)
      guard status == 200 else { return Dashboard.refuse(reply, DashboardRefusal(status, text)) }
      Dashboard.sendData(reply, Array(text.utf8))
    }
  }

  // MARK: - Answers

  /// Answers a request whose path is the dashboard's while that is off.
  package static func refuseWhileOff(_ reply: HTTPServerReply) {
    refuse(reply, DashboardRefusal(404, "the dashboard is off"))
  }

  private static func refuse(_ reply: HTTPServerReply, _ refusal: DashboardRefusal) {
    send(
      reply, refusal.status, "text/plain; charset=utf-8", Array("\(refusal.reason)\n".utf8),
      refusal.fields + [HTTPField("Cache-Control", "no-store")])
  }

  private static func sendData(_ reply: HTTPServerReply, _ body: [UInt8]) {
    send(reply, 200, "application/json", body, [HTTPField("Cache-Control", "no-store")])
  }

  private static func send(
    _ reply: HTTPServerReply, _ status: Int, _ contentType: String, _ body: [UInt8], _ fields: [HTTPField]
  ) {
    let type = [HTTPField("Content-Type", contentType)]
    reply.send(status: status, fields: type + PageRequest.safetyFields + fields, body: body)
  }
}
