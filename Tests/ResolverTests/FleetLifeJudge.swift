// FleetLifeJudge.swift -- what the provider said and when, and from that: which answers and which requests are allowed.

import DNSWire
import EventLoop
import HTTPDNS
import TestSupport

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// What a life of a fleet is made of.
struct FleetLifePlan {
  var seed: UInt64
  var minutes = 60
  var daemons = 10
  /// Queries a second that each daemon gets.
  var rate = 0.6
  /// The units of all daemons together; 0 for no limit.
  var limit = 0
  var names = 60
  /// Whether daemons restart and stop.
  var hasStops = true
  /// The first way in which the store fails.
  var firstFault = 0

  /// Names that are asked for once, when a daemon is stopped.
  static let coldNames = 40
  static let ttls: [UInt32] = [5, 20, 60, 300]
  /// How long a name keeps its address, in seconds.
  static let era: Int64 = 7

  func ttl(_ name: Int) -> UInt32 { FleetLifePlan.ttls[name % FleetLifePlan.ttls.count] }
}

/// The numbers of a life.
struct FleetLifeTally: Equatable {
  var queries = 0
  var answers = 0
  var failures = 0
  /// The longest that a client waited, in milliseconds.
  var longest: Int64 = 0
  var requests = 0
  /// Answers that came from the store, and values of it that were refused.
  var hits: UInt64 = 0
  var rejected: UInt64 = 0
  /// Refreshes that another daemon had made.
  var adopted: UInt64 = 0
  var stops = 0
  /// Requests beyond the limit of units, and those of them while the store worked.
  var over = 0
  var overInFlight = 0
  /// Requests that the limit forbade.
  var forbidden = 0
}

/// Looks on while a fleet lives, and notes what is against the rules.
final class FleetLifeJudge {
  private let plan: FleetLifePlan
  private let loop: SimulatedLoop
  private(set) var violations: [String] = []
  var tally = FleetLifeTally()
  /// When an address of a name last arrived at a daemon, by name and era.
  private var arrivals: [[Int64: BootInstant]]
  /// When a daemon last saw the provider fail for a name.
  private var failures: [Int: BootInstant] = [:]
  /// When each transfer that had been paid for ended.
  private var ends: [BootInstant] = []
  private var inFlight = 0
  /// Since when the store has worked; nil while it does not.
  var worksSince: BootInstant?

  /// The longest that a client may wait.
  static let patience = Duration.milliseconds(4_500)
  /// How long a failure may be remembered.
  private static let failureMemory = Duration.seconds(310)
  /// Whole seconds of TTLs, and the estimates of the store's clock.
  private static let tolerance = Duration.seconds(1)
  /// The age that a daemon's knowledge of the fleet's units may have: that of a look that then waits for another daemon.
  private static let knowledge = Duration.milliseconds(250)
  /// How long daemons may take until they have told each other everything after the store has failed.
  private static let grace = Duration.seconds(5)

  init(_ plan: FleetLifePlan, _ loop: SimulatedLoop) {
    (self.plan, self.loop) = (plan, loop)
    arrivals = Array(repeating: [:], count: plan.names + FleetLifePlan.coldNames)
  }

  func violate(_ text: String) {
    let seconds = (loop.now - BootInstant(nanoseconds: 1_000_000_000_000)).nanoseconds / 1_000_000
    if violations.count < 5 { violations.append("at \(seconds) ms: \(text)") }
  }

  // MARK: The provider

  /// The address that a name has now: the name and the time are in it.
  func address(of name: Int) -> String {
    let era = loop.now.nanoseconds / 1_000_000_000 / FleetLifePlan.era
    return "\(90 + name / 256).\(name % 256).\(era / 256 % 256).\(era % 256)"
  }

  func arrived(_ address: String, of name: Int) {
    let parts = address.split(separator: ".").compactMap { Int64($0) }
    arrivals[name][parts[2] * 256 + parts[3]] = loop.now
  }

  func failed(_ name: Int, at daemon: Int) { failures[daemon * 1_000 + name] = loop.now }

  /// A daemon believes that the fleet has units left, and asks the provider.
  func pays() {
    inFlight += 1
    tally.requests += 1
    guard plan.limit > 0, ends.count + inFlight > plan.limit else { return }
    tally.over += 1
    let known = ends.count { $0 + FleetLifeJudge.knowledge <= loop.now }
    guard let worksSince, loop.now - worksSince >= FleetLifeJudge.grace else { return }
    tally.overInFlight += 1
    if known >= plan.limit { violate("\(known) of \(plan.limit) units were spent, and one more was") }
  }

  func paid() {
    inFlight -= 1
    ends.append(loop.now)
  }

  // MARK: Clients

  /// A reply to a client that asked for a name at a time.
  func replied(_ octets: [UInt8], _ name: Int, askedAt: BootInstant, daemon: Int) {
    let after = loop.now - askedAt
    tally.longest = max(tally.longest, after.nanoseconds / 1_000_000)
    if after > FleetLifeJudge.patience { violate("a client of \(daemon) waited for \(name) for \(after)") }
    guard let message = try? Message.parse(octets) else { return violate("no message") }
    if message.responseCode == .servFail {
      tally.failures += 1
      let failedAt = failures[daemon * 1_000 + name]
      let isExcused = failedAt.map { loop.now - $0 < FleetLifeJudge.failureMemory } ?? false
      if !isExcused { violate("SERVFAIL of \(daemon) for \(name), although the provider did not fail") }
      return
    }
    tally.answers += 1
    guard message.responseCode == .noError, message.answers.count == 1, let record = message.answers.first,
      let address = message.addresses.first
    else { return violate("\(name): \(message)") }
    let parts = address.split(separator: ".").compactMap { Int64($0) }
    guard parts[0] == 90 + Int64(name) / 256, parts[1] == Int64(name) % 256,
      let arrival = arrivals[name][parts[2] * 256 + parts[3]]
    else { return violate("\(name) has never had \(address)") }
    let end = arrival + .seconds(Int64(plan.ttl(name))) + FleetLifeJudge.tolerance
    let late = loop.now + .seconds(Int64(record.ttl)) - end
    if late > .zero {
      violate("\(daemon) gave \(name) (TTL \(plan.ttl(name))) with a TTL of \(record.ttl), \(late) too long")
    }
  }
}
