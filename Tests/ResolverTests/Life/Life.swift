// Life.swift -- a resolver with its clients and its provider on a virtual clock, for hours or weeks.

import Configuration
import DNSWire
import EventLoop
import Glibc
import HTTPDNS
import MessageCache
import Refresh
import TestSupport

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// A simulated life.
final class Life {
  private let plan: LifePlan
  private let loop = SimulatedLoop()
  private let zone: LifeZone
  private let service: LifeService
  private let provider: LifeProvider
  private let local: LifeLocalDNS
  private let scene: ResolverScene
  private let refresher: Refresher
  private let judge: LifeJudge
  private var random: SeededGenerator
  private var id: UInt16 = 0
  private var networks = 0
  private let bursts: LifeBursts
  private var burst = 0
  private var hostileID: UInt16 = 0
  /// The queries that are sent, by name and family.
  private let messages: [[UInt8]]
  /// The sums of the names' shares, in the manner of Zipf.
  private let shares: [Double]

  init(_ plan: LifePlan) {
    self.plan = plan
    random = SeededGenerator(seed: plan.seed)
    bursts = LifeBursts(plan)
    zone = LifeZone(plan)
    let weather = LifeWeather(plan)
    service = LifeService(plan, zone, weather, on: loop)
    provider = LifeProvider(plan, service, on: loop)
    local = LifeLocalDNS(on: loop)
    // Room for the names of all bursts: what is least recently used would leave a full cache, fresh or not.
    scene = ResolverScene(
      on: loop, [provider], local: plan.hasLocalDNS ? local.upstream : nil, cacheEntries: 16_000, cacheSeed: plan.seed
    ) { settings in
      (settings.listen.missesPerClient, settings.listen.missesPerDomain) = (500, LifeHostileJudge.missesPerSecond)
      for index in settings.routes.indices { settings.routes[index].stale = plan.stale }
    }
    let kept = zone.hosts.suffix(plan.kept).flatMap { host in
      [RecordType.a, .aaaa].map {
        RoutedQuestion(question: HTTPDNSQuestion(name: host.name, type: $0), route: Route.Number.standard)
      }
    }
    var configuration = Configuration()
    (configuration.refresh.hotHits, configuration.refresh.giveUpAfter) = (LifePlan.hotHits, LifePlan.giveUpAfter)
    (configuration.refresh.budgetPerMinute, configuration.refresh.budgetPerDay) = (plan.perMinute, plan.perDay)
    (configuration.refresh.freePerMinute, configuration.refresh.batch) = (0, plan.batches)
    refresher = Refresher(
      configuration, keep: kept, preload: [], resolver: scene.resolver, cache: scene.cache, loop: loop
    ) { _ in }
    judge = LifeJudge(plan, zone, weather, now: { [loop] in loop.now.nanoseconds }) { [refresher] in
      refresher.counters.overBudget
    }
    messages = zone.hosts.flatMap { host in
      [RecordType.a, .aaaa].map { ResolverScene.octets(ClientQuestion(name: host.text, type: $0), id: 0) }
    }
    var sum = 0.0
    shares = (0..<plan.names).map { rank in
      sum += 1 / Double(rank + 1)
      return sum
    }
    scene.receive { [judge] in judge.replied($0) }
    service.onArrival = { [judge] in judge.arrived($0, $1) }
    service.onStray = { [judge] in judge.wasAskedForNothing($0) }
    local.onAsk = { [judge] in judge.askedLocalDNS($0) }
  }

  /// Lives it through; what was against the rules, and the numbers.
  func run() -> (violations: [String], tally: LifeTally) {
    refresher.begin()
    refresher.start()
    loop.advance(by: .seconds(5))
    // What is fetched at start is not refreshing.
    provider.onAsk = { [judge] in judge.askedProvider($0) }
    provider.onRecovery = { [judge] in judge.providerIsBack() }
    provider.onRefresh = { [judge] questions, isThere in
      if isThere == nil { judge.refreshes(questions) }
      if isThere == true { judge.refreshed(questions) }
    }
    provider.onHostile = { [judge] in judge.hostile.askedProvider($0) }
    let end = loop.now + .seconds(plan.span)
    var nextBurst = bursts.pause > 0 ? loop.now + .nanoseconds(plan.isHostileFromTheStart ? 0 : bursts.pause) : end
    var hostileQueries = 0
    var nextChange = plan.flap > 0 ? loop.now + .seconds(plan.flap) : end
    var nextSleep = plan.wakefulness > 0 ? loop.now + .seconds(plan.wakefulness) : end
    while loop.now < end, judge.violations.count < 5 {
      let wait = -log(Double.random(in: 0.000_001..<1, using: &random)) / plan.rate
      let next = min(loop.now + .nanoseconds(Int64(wait * 1e9)), nextChange, nextSleep, nextBurst)
      loop.advance(by: next - loop.now)
      if next == nextChange {
        changeNetwork()
        nextChange = nextChange + .seconds(plan.flap)
      } else if next == nextSleep {
        sleep()
        nextSleep = loop.now + .seconds(plan.wakefulness)
        nextChange = max(nextChange, loop.now)
        nextBurst = max(nextBurst, loop.now)
      } else if next == nextBurst {
        askHostile(hostileQueries)
        hostileQueries += 1
        nextBurst = nextBurst + .milliseconds(1000 / LifeBursts.rate)
        guard hostileQueries == LifeBursts.rate * LifeBursts.length else { continue }
        (hostileQueries, burst) = (0, burst + 1)
        nextBurst = nextBurst + .nanoseconds(bursts.pause)
      } else {
        ask()
      }
    }
    // What is refreshed meanwhile is no leftover.
    for _ in 0..<20 where scene.inFlight > 0 || scene.queries.inUse > 0 { loop.advance(by: .seconds(5)) }
    judge.end()
    var tally = judge.tally
    tally.overBudget = Int(refresher.counters.overBudget)
    tally.transfers = service.transfers
    tally.units = provider.units
    tally.hostile = judge.hostile.asked
    var violations = judge.violations + leftovers()
    if !(service.bill.least...service.bill.most).contains(tally.units) {
      violations.append("\(tally.units) units were counted; the provider bills \(service.bill)")
    }
    return (violations, tally)
  }

  /// When background transfers were made, in seconds.
  var refreshTimes: [Double] { judge.budgeted.map { Double($0) / 1e9 } }

  /// A client asks for a name in one family or, as most do, in both.
  private func ask() {
    let point = Double.random(in: 0..<shares[shares.count - 1], using: &random)
    let host = shares.firstIndex { point < $0 } ?? 0
    let isBoth = lifeNumber(plan.seed, 20, Int64(host)) % 5 > 0
    if plan.session > 0 {
      let session = loop.now.nanoseconds / (plan.session * second)
      guard lifeNumber(plan.seed, 21, Int64(host), session) % 3 > 0 else { return }
    }
    send(LifeQuestion(host, isIPv6: false))
    if isBoth { send(LifeQuestion(host, isIPv6: true)) }
  }

  private func send(_ question: LifeQuestion) {
    id &+= 1
    var message = messages[question.place]
    message[0] = UInt8(id >> 8)
    message[1] = UInt8(truncatingIfNeeded: id)
    judge.asked(question, id: id)
    // Another client each time: one that asks again may have a second attempt.
    scene.send(message, from: plan.isOneMachine ? Life.machine : id, port: plan.isOneMachine ? 1024 | id : 5353)
  }

  /// The address that hostile clients have.
  private static let machine: UInt16 = 0xFFFF

  /// The next query of a hostile client's burst.
  private func askHostile(_ number: Int) {
    let question = bursts.malice(burst).question(burst, number, hosts: plan.names)
    hostileID &+= 1
    judge.hostile.asks(id: hostileID)
    let message = ResolverScene.octets(ClientQuestion(name: question.name, type: question.type), id: hostileID)
    scene.send(message, from: Life.machine, port: 1024 | hostileID)
  }

  /// As the follower of the network does it, to and fro between two networks.
  private func changeNetwork() {
    judge.networkHasChanged()
    networks += 1
    provider.networkHasChanged()
    scene.resolver.assumeIsolated { $0.networkHasChanged() }
    scene.network.change(to: UInt32(1 + networks % 2))
    scene.cache.beginEpoch()
    refresher.networkHasChanged()
  }

  /// The machine sleeps for minutes or hours, and resumes on the same network.
  private func sleep() {
    loop.sleep(through: .seconds(Int64.random(in: 60...20_000, using: &random)))
    judge.hasWoken()
    refresher.hasSlept()
    provider.networkHasChanged()
    scene.resolver.assumeIsolated { $0.networkHasChanged() }
    scene.cache.beginEpoch()
    refresher.networkHasChanged()
    loop.advance(by: .zero)
  }

  /// What is left behind in the end, although nothing is in flight.
  private func leftovers() -> [String] {
    [
      ("slots", scene.queries.inUse), ("in flight", scene.inFlight),
      ("in flight", scene.resolver.assumeIsolated { $0.inFlight.count }), ("strays", scene.strays),
    ].filter { $0.1 != 0 }.map { "\($0.1) \($0.0) left" }
  }
}
