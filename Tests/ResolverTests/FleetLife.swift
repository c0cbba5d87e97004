// FleetLife.swift -- ten daemons with a store that fails, on a virtual clock, for an hour.

import Configuration
import DNSWire
import EventLoop
import FleetTestSupport
import Glibc
import HTTPDNS
import TestSupport

@testable import Fleet
@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// One start of one daemon.
private final class FleetLifeDaemon {
  let number: Int
  let provider: ScriptedUpstream
  let scene: ResolverScene
  let refresher: RefresherScene
  let link: ScriptedLink
  let level: FleetLevel
  private let stream: ScriptedStream
  let units: AccountUnits
  /// Units that it has spent today, also before this start, and those of transfers in flight.
  var own: Int
  var inFlight = 0
  /// Whether its provider is silent.
  var isMuted = false
  var isStopped = false
  /// Queries without a reply, by ID.
  var pending: [UInt16: (name: Int, askedAt: BootInstant)] = [:]
  private var id: UInt16 = 0

  static let fingerprint = [UInt8](repeating: 1, count: 32)

  init(_ number: Int, start: Int, own: Int, store: ScriptedStore, _ loop: SimulatedLoop, _ plan: FleetLifePlan) {
    (self.number, self.own) = (number, own)
    let seed = lifeNumber(plan.seed, 50, Int64(number), Int64(start))
    provider = ScriptedUpstream(on: loop) { _, _ in .silence }
    provider.remembers = false
    scene = ResolverScene(on: loop, [provider], cacheSeed: seed) { settings in
      settings.routes[0].fleetFingerprint = FleetLifeDaemon.fingerprint
    }
    refresher = RefresherScene(scene) { $0 = FleetScene.refreshing }
    let identity = (0..<8).map { UInt8(truncatingIfNeeded: seed >> (8 * $0)) } + [UInt8](repeating: 0, count: 8)
    let link = store.link()
    self.link = link
    nonisolated(unsafe) let level = FleetLevel(
      FleetLife.keys, Configuration().fleet, over: link, on: loop, identity: identity,
      member: FleetMember(id: "\(seed)", version: "1", fingerprint: "f", host: "h\(number)")
    ) { _ in }
    var random = SeededGenerator(seed: seed)
    level.jitter = { .random(in: 0...1, using: &random) }
    scene.resolver.assumeIsolated { $0.use(level) }
    stream = store.connect(level, over: link)
    self.level = level
    units = AccountUnits(level.units, account: "account", isLimited: plan.limit > 0)
  }

  func send(_ message: [UInt8], for name: Int, at now: BootInstant) {
    id &+= 1
    var message = message
    (message[0], message[1]) = (UInt8(id >> 8), UInt8(truncatingIfNeeded: id))
    pending[id] = (name, now)
    scene.send(message, from: id, port: 5353)
  }

  /// It is gone from one moment to the next.
  func stop() {
    isStopped = true
    link.isCut = true
    stream.isAway = true
    pending = [:]
  }
}

/// The ways in which a store fails for a minute.
enum FleetFault: CaseIterable {
  case silent, down, readOnly, lost, slow, clock, forged
}

/// A simulated life of a fleet.
final class FleetLife {
  private let plan: FleetLifePlan
  private let loop = SimulatedLoop()
  private let store: ScriptedStore
  private let judge: FleetLifeJudge
  private var daemons: [FleetLifeDaemon] = []
  private var random: SeededGenerator
  private var starts = 0
  private var coldName: Int
  private let zipf: ZipfNames
  private let names: [DomainName]
  private let indexes: [DomainName: Int]
  private let messages: [[UInt8]]
  /// Values of the store that a forger has seen.
  private var seen: [[UInt8]: [UInt8]] = [:]

  static let keys = FleetKeys(namespace: "httpdnsd", site: "", secret: FleetScene.secret)
  private static let wrongKeys = FleetKeys(namespace: "httpdnsd", site: "", secret: Array("of another fleet".utf8))

  init(_ plan: FleetLifePlan) {
    self.plan = plan
    random = SeededGenerator(seed: plan.seed)
    store = ScriptedStore(on: loop)
    judge = FleetLifeJudge(plan, loop)
    coldName = plan.names
    zipf = ZipfNames(plan.names)
    let texts = (0..<(plan.names + FleetLifePlan.coldNames)).map { "host\($0).domain\($0 % 10).example" }
    names = texts.map { DomainName(text: $0)! }
    indexes = Dictionary(uniqueKeysWithValues: zip(names, names.indices))
    messages = texts.map { ResolverScene.octets(ClientQuestion(name: $0), id: 0) }
    judge.worksSince = loop.now
    for number in 0..<plan.daemons { start(number) }
  }

  /// Lives it through; what was against the rules, and the numbers.
  func run() -> (violations: [String], tally: FleetLifeTally) {
    loop.advance(by: .seconds(1))
    let begin = loop.now
    let end = begin + .seconds(60 * Int64(plan.minutes))
    var nextStep = begin + .seconds(1)
    while loop.now < end, judge.violations.isEmpty {
      let wait = -log(Double.random(in: 0.000_001..<1, using: &random)) / (plan.rate * Double(plan.daemons))
      let next = min(loop.now + .nanoseconds(Int64(wait * 1e9)), nextStep)
      loop.advance(by: next - loop.now)
      if next == nextStep {
        second(Int((loop.now - begin).nanoseconds / 1_000_000_000))
        nextStep = nextStep + .seconds(1)
      } else {
        ask(Int.random(in: 0..<plan.daemons, using: &random), zipf.draw(&random))
      }
    }
    loop.advance(by: .seconds(5))
    for daemon in daemons {
      count(daemon)
      for (name, askedAt) in daemon.pending.values {
        judge.violate("a client of \(daemon.number) that asked for \(name) at \(askedAt) has no reply")
      }
    }
    return (judge.violations, judge.tally)
  }

  // MARK: Daemons

  private func start(_ number: Int) {
    starts += 1
    // The units of the day are kept in a file.
    let own = daemons.indices.contains(number) ? daemons[number].own : 0
    let daemon = FleetLifeDaemon(number, start: starts, own: own, store: store, loop, plan)
    daemon.provider.script = { [unowned self, unowned daemon] question, _ in step(daemon, question) }
    daemon.scene.receive { [unowned self, unowned daemon] in replied($0, daemon) }
    if daemons.indices.contains(number) { daemons[number] = daemon } else { daemons.append(daemon) }
    if own > 0 { daemon.units.spent(own: own, day: day) }
  }

  private func stop(_ daemon: FleetLifeDaemon) {
    count(daemon)
    daemon.stop()
    former.append(daemon)
    judge.tally.stops += 1
  }

  /// Daemons that have been stopped: what they had begun goes on, unseen.
  private var former: [FleetLifeDaemon] = []

  private func count(_ daemon: FleetLifeDaemon) {
    guard !daemon.isStopped else { return }
    judge.tally.hits += daemon.level.counters.count(of: .hit)
    judge.tally.rejected += daemon.level.counters.count(of: .rejected)
    judge.tally.adopted += daemon.level.counters.adopted
  }

  private var day: Int64 { loop.wallTime / 86_400 }

  private func ask(_ number: Int, _ name: Int) {
    let daemon = daemons[number]
    guard !daemon.isStopped else { return }
    judge.tally.queries += 1
    daemon.send(messages[name], for: name, at: loop.now)
  }

  private func replied(_ octets: [UInt8], _ daemon: FleetLifeDaemon) {
    guard !daemon.isStopped else { return }
    guard let query = daemon.pending.removeValue(forKey: UInt16(octets[0]) << 8 | UInt16(octets[1])) else {
      return judge.violate("a reply without a query")
    }
    judge.replied(octets, query.name, askedAt: query.askedAt, daemon: daemon.number)
  }

  /// What the provider does with a question of a daemon.
  private func step(_ daemon: FleetLifeDaemon, _ question: HTTPDNSQuestion) -> ScriptedStep {
    guard !daemon.isStopped, !daemon.isMuted, let name = indexes[question.name] else { return .silence }
    if plan.limit > 0 {
      let others = daemon.units.othersUnits(own: daemon.own, day: day)
      guard daemon.own + daemon.inFlight + others < plan.limit else {
        judge.tally.forbidden += 1
        judge.failed(name, at: daemon.number)
        return .failure(.other, .notAsked, after: .zero)
      }
    }
    judge.pays()
    daemon.inFlight += 1
    var latency = Duration.milliseconds(Int.random(in: 20...40, using: &random))
    if random.oneIn(20) { latency = .milliseconds(Int.random(in: 100...1_900, using: &random)) }
    let (isSilent, fails) = (random.oneIn(300), random.oneIn(100))
    let address = judge.address(of: name)
    loop.schedule(after: isSilent ? daemon.provider.timeout : latency) { [judge, weak daemon, day] in
      judge.paid()
      if isSilent || fails { judge.failed(name, at: daemon?.number ?? 0) } else { judge.arrived(address, of: name) }
      guard let daemon else { return }
      daemon.inFlight -= 1
      daemon.own += 1
      if !daemon.isStopped { daemon.units.spent(own: daemon.own, day: day) }
    }
    if isSilent { return .silence }
    if fails { return .failure(after: latency) }
    return .answer(.addresses(question.name, address, ttl: plan.ttl(name)), after: latency)
  }

  // MARK: What happens to them

  /// The store fails in the third minute of every five; daemons restart or are stopped now and then.
  private func second(_ second: Int) {
    let (round, part) = (second / 300, second % 300)
    let fault = FleetFault.allCases[(round + plan.firstFault) % FleetFault.allCases.count]
    switch part {
    case 120: begin(fault)
    case 121..<180: during(fault, part)
    case 180: end(fault)
    default: break
    }
    guard plan.hasStops else { return }
    // While it works and while it does not.
    if part == 60 || part == 150 { restart(Int.random(in: 0..<plan.daemons, using: &random)) }
    if part == 90 || part == 210 { stopWithLease(Int.random(in: 0..<plan.daemons, using: &random)) }
    if part == 110 || part == 240 { for daemon in daemons where daemon.isStopped { start(daemon.number) } }
  }

  private func restart(_ number: Int) {
    guard !daemons[number].isStopped else { return }
    stop(daemons[number])
    start(number)
  }

  /// Stops a daemon while it asks for a name for all.
  private func stopWithLease(_ number: Int) {
    guard coldName < names.count, !daemons[number].isStopped else { return }
    daemons[number].isMuted = true
    ask(number, coldName)
    loop.advance(by: .milliseconds(5))
    let lease = FleetLife.keys.lease(question(coldName))
    if store.condition == .works, store.values[lease] == nil { judge.violate("no lease for \(coldName)") }
    stop(daemons[number])
    for other in daemons.indices { ask(other, coldName) }
    coldName += 1
  }

  private func begin(_ fault: FleetFault) {
    judge.worksSince = nil
    switch fault {
    case .silent: store.condition = .silent
    case .down: store.condition = .down
    case .readOnly: store.condition = .readOnly
    case .lost: store.flushAll()
    case .slow: store.latency = .milliseconds(50)
    case .clock:
      store.clockOffset = [-400, -200, -30, 30, 200, 400].randomElement(using: &random)!
      // Another machine has taken its place.
      store.reconnect()
    case .forged: seen = store.values.mapValues(\.octets)
    }
  }

  private func during(_ fault: FleetFault, _ part: Int) {
    if fault == .lost, part % 20 == 0 { store.flushAll() }
    if fault == .forged { forge() }
  }

  private func end(_ fault: FleetFault) {
    judge.worksSince = loop.now
    (store.condition, store.latency, store.clockOffset) = (.works, .microseconds(200), 0)
  }

  private func question(_ name: Int) -> FleetQuestion {
    FleetQuestion(
      name: names[name], type: .a, dnssecOK: false, checkingDisabled: false, subnet: nil,
      fingerprint: FleetLifeDaemon.fingerprint)
  }

  /// Puts values where daemons look for answers, and leases that no daemon holds.
  private func forge() {
    for _ in 0..<10 {
      let name = Int.random(in: 0..<plan.names, using: &random)
      let key = FleetLife.keys.answer(question(name))
      let octets: [UInt8]?
      switch Int.random(in: 0..<5, using: &random) {
      case 0: octets = random.octets(Int.random(in: 0..<300, using: &random))
      // What was there before, and what stands elsewhere.
      case 1: octets = seen[key]
      case 2: octets = seen[FleetLife.keys.answer(question(Int.random(in: 0..<plan.names, using: &random)))]
      case 3: octets = forged(name).octets(for: key, FleetLife.wrongKeys)
      default:
        octets = forged(name).octets(for: key, FleetKeys(namespace: "httpdnsd", site: "", secret: nil))
      }
      if let octets { store.values[key] = ScriptedStore.Value(octets: octets, expiresAt: nil) }
      let lease = FleetLife.keys.lease(question(Int.random(in: 0..<plan.names, using: &random)))
      store.values[lease] = ScriptedStore.Value(octets: [0], expiresAt: loop.now + .seconds(5))
    }
  }

  private func forged(_ name: Int) -> FleetValue {
    var header = Header()
    header.qr = true
    return FleetValue(
      message: Message(
        id: 0, header: header, questions: [Message.Entry(Question(name: names[name], type: .a))],
        answers: [ResourceRecord(owner: names[name], type: .a, ttl: 300, rdata: [6, 6, 6, 6])]),
      scope: nil, extendedError: nil, stored: store.time - 1_000, expires: store.time + 200_000, provider: "first")
  }
}
