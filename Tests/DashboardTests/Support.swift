// Support.swift -- readings of the statistics, as tests want them.

import EventLoop
import Frontend
import MessageCache
import TestSupport

@testable import Dashboard
@testable import Forwarder
@testable import Refresh
@testable import Resolver
@testable import Upstreams

extension ForwarderStatistics {
  /// Of a forwarder that has begun to count at 0.
  static func at(_ time: BootInstant, _ change: (inout ForwarderStatistics) -> Void = { _ in }) -> ForwarderStatistics {
    var statistics = ForwarderStatistics(
      time: time, startedAt: BootInstant(nanoseconds: 0), queries: QueryTotals(), resolver: ResolverCounters(),
      questionsInFlight: 0, maxQuestionsInFlight: 1024, waitingClients: 0, refresh: RefreshCounters(),
      scheduledRefreshes: 0, cache: CacheStatistics(), unreadOctets: 0, droppedDatagrams: 0, tcpConnections: 0,
      refusedTCPConnections: 0, providers: [])
    change(&statistics)
    return statistics
  }
}

extension ProviderReport {
  /// A provider that has made some transfers.
  static func with(_ name: String, transfers: Int = 0, units: Int = 0, state: State = .up) -> ProviderReport {
    var report = ProviderReport(name: name)
    (report.counters.transfers, report.unitsToday, report.state) = (transfers, units, state)
    return report
  }
}

/// A sampler on a virtual clock, and what it counts: ten hits a second.
final class SamplerScene {
  let loop = SimulatedLoop()
  private(set) var sampler: Sampler!
  private(set) var reports: [Sample] = []
  private(set) var jumps = 0
  /// What the wall clock is ahead of its usual time.
  var clockShift: Int64 = 0
  var providers = ["first"]

  init() {
    sampler = Sampler(on: loop, { [unowned self] in statistics }, wallClock: { [unowned self] in wallClock })
    sampler.report = { [unowned self] sample, _ in reports.append(sample) }
    sampler.clockHasJumped = { [unowned self] in jumps += 1 }
  }

  /// Nanoseconds since 1970 in which the virtual clock begins.
  static let epoch: Int64 = 1_700_000_000_000_000_000

  private var wallClock: Int64 { SamplerScene.epoch + loop.now.nanoseconds + clockShift }

  private var statistics: ForwarderStatistics {
    .at(loop.now) { statistics in
      let seconds = loop.now.nanoseconds / 1_000_000_000
      statistics.queries.add(UInt64(seconds) * 10, .hit, over: .udp)
      statistics.providers = providers.map { .with($0, transfers: Int(seconds), units: Int(seconds)) }
    }
  }

  /// The column of a figure, in the order of the rows.
  func column(_ name: String, of ring: SampleRing) -> [Float] {
    let column = Figure.names.firstIndex(of: name)!
    return ring.places.map { ring.figures[column][$0] }
  }
}
