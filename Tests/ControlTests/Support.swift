// Support.swift -- a control server on a loop of its own, and a folder for its socket.

import EventLoop
import Glibc
import HTTPTestSupport
import Resolver
import Synchronization
import TestSupport

@testable import Control
@testable import Forwarder
@testable import Upstreams
@testable import Frontend
@testable import MessageCache

extension TemporaryFolder {
  /// Where a socket can be.
  var socket: String { path(of: "socket") }
}

/// What a scene's actions were asked for.
final class Journal: Sendable {
  let flushed = Mutex<[CacheSelection]>([])
  /// The other commands, as words.
  let commands = Mutex<[String]>([])
}

/// What a scene's actions tell.
struct Told: Sendable {
  var reload = ReloadReport()
  var counts = FlushCounts()
  var reports: [ProviderReport] = []
  var content = NameContent()
  var summary = RefreshSummary()
  var bad = BadAddressOutcome()
  var names: [NameReport] = []
  var numbers = DaemonNumbers.empty
}

extension DaemonNumbers {
  /// Of a daemon that has done nothing for ten seconds.
  static let empty = DaemonNumbers(
    statistics: ForwarderStatistics(
      time: BootInstant(nanoseconds: 60_000_000_000), startedAt: BootInstant(nanoseconds: 50_000_000_000),
      queries: QueryTotals(), resolver: ResolverCounters(), questionsUnderWay: 0, mostQuestionsUnderWay: 1024,
      waitingClients: 0, refresh: nil, scheduledRefreshes: 0, cache: CacheStatistics(), unreadOctets: nil,
      droppedDatagrams: nil, tcpConnections: 0, refusedTCPConnections: 0, providers: []),
    counts: NameCounts(), network: "eth0")
}

/// A server that listens, with actions that only note what they are asked for.
final class ControlScene {
  let folder = TemporaryFolder()
  let journal = Journal()
  private let loop: EventLoop
  private let thread: LoopThread
  private let server: ControlServer

  init(_ told: Told = Told()) throws {
    let loop = try EventLoop()
    self.loop = loop
    let actions = ControlActions(
      flush: { [journal] names in
        journal.flushed.withLock { $0.append(names) }
        await loop.sleep(for: .zero)
        return told.counts
      }, providers: { told.reports },
      content: { [journal] name in
        journal.commands.withLock { $0.append("cache \(name)") }
        return told.content
      },
      refresh: { [journal] name, types in
        journal.commands.withLock { $0.append("refresh \(name) \(types)") }
        return told.summary
      },
      reportBad: { [journal] address, name in
        journal.commands.withLock { $0.append("report-bad \(name) \(address)") }
        return told.bad
      }, numbers: { told.numbers }, names: { BusyNamesReport(reports: told.names, network: "eth0") },
      reload: { told.reload }, file: "/etc/httpdnsd/httpdnsd.toml")
    server = try ControlServer(on: loop, actions)
    try server.listen(path: folder.socket)
    thread = LoopThread(running: loop)
  }

  deinit { thread.join() }

  var client: ControlClient { ControlClient(path: folder.socket, patience: .seconds(60)) }
  var raw: RawClient? { RawClient(toPath: folder.socket) }
}
