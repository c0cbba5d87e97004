// Support.swift -- a control server on a loop of its own, and a folder for its socket.

import DNSWire
import EventLoop
import FirewallSets
import Fleet
import Glibc
import HTTPTestSupport
import ListStore
import Synchronization
import TestSupport

@testable import BusyNames
@testable import Control
@testable import Forwarder
@testable import Frontend
@testable import MessageCache
@testable import Ranking
@testable import Resolver
@testable import Upstreams

extension TemporaryFolder {
  /// Where a socket can be.
  var socket: String { path(of: "socket") }
}

/// What a scene's actions were asked for.
final class Journal: Sendable {
  let flushed = Mutex<[FlushedNames]>([])
  /// The other commands, as words.
  let commands = Mutex<[String]>([])
  let watches = Watches()
}

/// The watches of a scene. Its loop's thread only.
final class Watches: @unchecked Sendable {
  private(set) var all: [QueryWatch] = []
  /// What a new watch gets at once; set before there is one.
  var queries: [LoggedQuery] = []

  func add(_ watch: QueryWatch) {
    all.append(watch)
    if !queries.isEmpty { watch.take(queries[...], LogClock(), missing: 0) }
  }

  func remove(_ watch: QueryWatch) { all.removeAll { $0 === watch } }
}

/// The answers of a scene's actions.
struct Answers: Sendable {
  var reload = ReloadReport()
  var counts = FlushCounts()
  var reports: [ProviderReport] = []
  var content = NameContent()
  var summary = RefreshSummary()
  var bad = BadAddressOutcome()
  var reported = ReportOutcome.taken(counted: 1, unknown: 0)
  var overview = CacheOverview()
  var names: [NameReport] = []
  var numbers = DaemonNumbers.empty
  var fleet: FleetReport?
  var reach: FlushReach?
  var lists: [ListReport] = []
  var updates: [ListUpdate] = []
  var hits: [ListHit] = []
  var sets: [SetStatus] = []
  var code: DashboardCode?
}

extension DaemonNumbers {
  /// Of a daemon that has done nothing for ten seconds.
  static let empty = DaemonNumbers(
    statistics: ForwarderStatistics(
      time: BootInstant(nanoseconds: 60_000_000_000), startedAt: BootInstant(nanoseconds: 50_000_000_000),
      queries: QueryTotals(), resolver: ResolverCounters(), questionsInFlight: 0, maxQuestionsInFlight: 1024,
      waitingClients: 0, refresh: nil, scheduledRefreshes: 0, cache: CacheStatistics(), unreadOctets: nil,
      droppedDatagrams: nil, tcpConnections: 0, refusedTCPConnections: 0, providers: []),
    counts: NameCounts(), network: "eth0")
}

/// Actions that only note what they are asked for.
private struct NotedActions: ControlActions {
  let loop: EventLoop
  let answers: Answers
  let journal: Journal
  let file = "/etc/httpdnsd/httpdnsd.toml"
  let instance = IPAddress(text: "240.1.2.3")!

  private func note(_ line: String) { journal.commands.withLock { $0.append(line) } }

  func flush(_ names: FlushedNames, everywhere: Bool) async -> (counts: FlushCounts, reach: FlushReach?) {
    journal.flushed.withLock { $0.append(names) }
    await loop.sleep(for: .zero)
    return (answers.counts, everywhere ? answers.reach : nil)
  }

  func fleet() async -> FleetReport? { answers.fleet }

  func providers() async -> [ProviderReport] { answers.reports }

  func lists() async -> [ListReport] { answers.lists }

  func updateLists(_ name: String?) async -> [ListUpdate] {
    note("update \(name ?? "all")")
    return answers.updates
  }

  func findInLists(_ name: DomainName) async -> [ListHit] {
    note("find \(name)")
    return answers.hits
  }

  func sets(refilled: Bool) async -> [SetStatus] {
    note(refilled ? "refill" : "sets")
    return answers.sets
  }

  func content(of name: DomainName) async -> NameContent {
    note("cache \(name)")
    return answers.content
  }

  func overview(busiest count: Int) async -> CacheOverview {
    note("overview \(count)")
    return answers.overview
  }

  func refresh(_ name: DomainName, _ types: [RecordType]) async -> RefreshSummary {
    note("refresh \(name) \(types)")
    return answers.summary
  }

  func reportBad(_ address: IPAddress, of name: DomainName) async -> BadAddressOutcome {
    note("report-bad \(name) \(address)")
    return answers.bad
  }

  func take(_ batch: ReportBatch) async -> ReportOutcome {
    for report in batch.reports { note("report \(report.name) \(report.address) \(report.result)") }
    return answers.reported
  }

  func numbers() async -> DaemonNumbers { answers.numbers }

  func names() async -> BusyNamesReport { BusyNamesReport(reports: answers.names, network: "eth0") }

  func reload() async -> ReloadReport { answers.reload }

  func watch(_ watch: QueryWatch) { journal.watches.add(watch) }

  func unwatch(_ watch: QueryWatch) { journal.watches.remove(watch) }

  func makeDashboardCode(for user: UInt32) -> DashboardCode? { answers.code }

  func log(_ line: String) { note(line) }
}

/// A server that listens, with actions that only note what they are asked for.
final class ControlScene {
  let folder = TemporaryFolder()
  let journal = Journal()
  private let loop: EventLoop
  private let thread: LoopThread
  private let server: ControlServer

  /// - Parameter isTailOpen: whether others than root may watch queries.
  init(_ answers: Answers = Answers(), isTailOpen: Bool = true) throws {
    let loop = try EventLoop()
    self.loop = loop
    let actions = NotedActions(loop: loop, answers: answers, journal: journal)
    let tails = TailService(actions)
    tails.isOpen = isTailOpen
    server = ControlServer(on: loop, actions, tails)
    try server.listen(path: folder.socket)
    thread = LoopThread(running: loop)
  }

  deinit { thread.join() }

  /// Something that happens on the server's loop.
  func onLoop(_ body: @escaping @Sendable () -> Void) { loop.execute(body) }

  var client: ControlClient { ControlClient(path: folder.socket, patience: .seconds(60)) }
  var raw: RawClient? { RawClient(toPath: folder.socket) }
}
