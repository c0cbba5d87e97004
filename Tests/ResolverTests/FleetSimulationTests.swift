// FleetSimulationTests.swift -- what a store saves: provider requests of a fleet, with it and without it.

import Configuration
import DNSWire
import EventLoop
import Glibc
import TestSupport
import Testing

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// Names of which each is asked for less often than the one before: in proportion to 1 / rank.
struct ZipfNames {
  /// The sums of the names' shares.
  private let shares: [Double]

  init(_ count: Int) {
    var sum = 0.0
    shares = (1...count).map { rank in
      sum += 1 / Double(rank)
      return sum
    }
  }

  /// The index of a name.
  func draw(_ random: inout SeededGenerator) -> Int {
    let point = Double.random(in: 0..<shares[shares.count - 1], using: &random)
    var (low, high) = (0, shares.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if shares[middle] <= point { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// What clients have asked of all daemons, and what that has cost.
struct FleetLoad {
  var queries = 0
  var replies = 0
  var failures = 0
  var requests = 0

  static let names = 1_000
  static let ttl: UInt32 = 60
  /// Queries a second that each daemon gets.
  static let rate = 5.0
  /// The time that is not counted, in seconds: caches fill, and names become hot.
  static let warmUp = 2 * Double(ttl)

  var perThousand: Double { 1_000 * Double(requests) / Double(max(1, queries)) }

  /// Asks daemons for some minutes.
  init(daemons: Int, sharing: Bool, minutes: Double, seed: UInt64) {
    let fleet = FleetScene(
      daemons, isAlone: !sharing,
      script: { question, _ in
        .answer(.addresses(question.name, "192.0.2.1", ttl: FleetLoad.ttl), after: .milliseconds(30))
      })
    let refreshers = fleet.scenes.map {
      RefresherScene($0) { $0 = sharing ? FleetScene.refreshing : Configuration() }
    }
    for scene in fleet.scenes { scene.onlyCount() }
    for provider in fleet.providers { provider.remembers = false }
    let messages = (0..<FleetLoad.names).map {
      ResolverScene.octets(ClientQuestion(name: "host\($0).domain\($0 % 100).example"), id: 0)
    }
    let names = ZipfNames(FleetLoad.names)
    var random = SeededGenerator(seed: seed)
    let begin = fleet.loop.now + .seconds(FleetLoad.warmUp)
    let end = begin + .seconds(60 * minutes)
    var requestsBefore: Int?
    var (id, all) = (UInt16(0), 0)
    while fleet.loop.now < end {
      let wait = -log(Double.random(in: 0.000_001..<1, using: &random)) / (FleetLoad.rate * Double(daemons))
      fleet.loop.advance(by: .seconds(wait))
      if fleet.loop.now >= begin, requestsBefore == nil { requestsBefore = fleet.transfers }
      if requestsBefore != nil { queries += 1 }
      (id, all) = (id &+ 1, all + 1)
      var message = messages[names.draw(&random)]
      (message[0], message[1]) = (UInt8(id >> 8), UInt8(truncatingIfNeeded: id))
      fleet.scenes[Int.random(in: 0..<daemons, using: &random)].send(message, from: id, port: 5353)
    }
    requests = fleet.transfers - (requestsBefore ?? 0)
    fleet.loop.advance(by: .seconds(5))
    let tallies = fleet.scenes.map(\.tally)
    replies = queries - all + tallies.reduce(0) { $0 + $1.replies }
    failures = tallies.reduce(0) { $0 + $1.servFails }
    withExtendedLifetime(refreshers) {}
  }
}

@Suite struct FleetSimulationTests {
  /// How many lives and minutes are wanted: `make simulate-fleet`.
  static let size = getenv("HTTPDNSD_SIMULATE_FLEET").flatMap { Int(String(cString: $0)) } ?? 0

  private func load(_ daemons: Int, sharing: Bool, minutes: Double) -> FleetLoad {
    let load = FleetLoad(daemons: daemons, sharing: sharing, minutes: minutes, seed: testSeed)
    #expect(load.replies == load.queries && load.failures == 0, "HTTPDNSD_TEST_SEED=\(testSeed): \(load)")
    return load
  }

  @Test func `ten daemons with a store send at most half the requests of ten without one`() {
    let (shared, alone) = (load(10, sharing: true, minutes: 2), load(10, sharing: false, minutes: 2))
    #expect(
      shared.perThousand <= 0.5 * alone.perThousand,
      "HTTPDNSD_TEST_SEED=\(testSeed): \(shared.perThousand) and \(alone.perThousand) per 1,000 queries")
  }

  @Test(.enabled(if: FleetSimulationTests.size > 0))
  func `the more daemons share a store the fewer requests a query costs`() {
    print("requests to the provider per 1,000 queries, TTL 60 s, 5 queries a second for each daemon")
    print("daemons  without  with  share")
    var last = Double.infinity
    for daemons in [1, 3, 10, 30, 100] {
      let alone = load(daemons, sharing: false, minutes: 10).perThousand
      let shared = load(daemons, sharing: true, minutes: 10).perThousand
      func column(_ text: String, _ width: Int) -> String { String(repeating: " ", count: width - text.count) + text }
      print(
        column("\(daemons)", 7), column("\(Int(alone.rounded()))", 8), column("\(Int(shared.rounded()))", 5),
        column("\((100 * shared / alone).rounded() / 100)", 6))
      #expect(shared < last && (daemons == 1 || shared < alone))
      last = shared
    }
  }
}
