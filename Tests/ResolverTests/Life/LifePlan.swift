// LifePlan.swift -- what a simulated life is made of: one seed decides on everything.

import Configuration
import EventLoop
import TestSupport

@testable import ForwarderTestSupport
@testable import Frontend
@testable import Resolver
@testable import Upstreams

/// Seconds and milliseconds as the nanoseconds of a loop's clock.
let second: Int64 = 1_000_000_000
let millisecond: Int64 = 1_000_000

/// How a simulated provider is asked.
enum LifeDialect: CaseIterable {
  /// One question a transfer; it can say NXDOMAIN.
  case json
  /// Five names in both families, billed by the answer.
  case emas
  /// Eight names in both families, billed by the transfer.
  case tencent
  /// Ten names in both families, billed by the name.
  case baidu
  /// The same, always in both families.
  case volcengine
  /// Ten names in one family, billed by the name.
  case jdcloud
  /// One name in one family, billed by the request.
  case ucloud
  /// The same, without a bill.
  case text
}

/// The conditions of a life.
struct LifePlan {
  var seed: UInt64
  /// How long it lasts, in seconds.
  var span: Int64
  var dialect: LifeDialect
  /// Servers of the provider, which share its outages.
  var servers = 1
  /// Names, of which the first is the most popular.
  var names = 16
  /// Queries a second, for all names together.
  var rate: Double
  /// The TTLs that names have.
  var ttls: [UInt32]
  /// How long records stay as they are, in seconds.
  var eras: [Int64]
  /// How long a name is popular or unused, in seconds; 0 if all are in use all the time.
  var session: Int64
  var stale = StalePolicy()
  /// Whether a transfer takes 0.1 to 1.9 s instead of some milliseconds.
  var isSlow = false
  var batches = true
  var hasOutages = true
  /// Whether every name has addresses of both families.
  var isDual = false
  /// Whether hosts are withdrawn now and then, as a whole or from IPv4.
  var hasRemovals = true
  /// Seconds from one change of the network to the next; 0 for none.
  var flap: Int64 = 0
  /// Seconds from one sleep of the machine to the next; 0 for none.
  var wakefulness: Int64 = 0
  /// Seconds from one burst of a hostile client to the next; 0 for none.
  var hostility: Int64 = 0
  /// Whether the first burst comes with the start.
  var isHostileFromTheStart = false
  /// Whether there is a LocalDNS, which knows every name.
  var hasLocalDNS = false
  /// Whether all clients, hostile ones as well, have one address, as programs of one machine have.
  var isOneMachine = false
  var perMinute = 60
  var perDay = 10_000
  /// How many names are always kept fresh: the least popular ones.
  var kept = 0

  static let hotHits = 5
  static let giveUpAfter = 3

  /// A life of `span` seconds that has a bit of everything.
  ///
  /// - Parameter rate: queries a second.
  init(seed: UInt64, span: Int64, rate: Double) {
    var random = SeededGenerator(seed: seed)
    self.seed = seed
    self.span = span
    self.rate = rate
    dialect = LifeDialect.allCases.randomElement(using: &random)!
    ttls = [[5, 12, 30, 60, 300], [60, 300, 600, 3600], [10, 120, 1800]].randomElement(using: &random)!
    eras = [[300, 1800, 7200], [120, 86_400], [3600, 14_400]].randomElement(using: &random)!
    session = Int64.random(in: 600...7200, using: &random)
    servers = Int.random(in: 1...2, using: &random)
    isSlow = random.oneIn(2)
    batches = !random.oneIn(4)
    stale.mode = [.off, .onFailure, .onFailure, .immediate].randomElement(using: &random)!
    stale.maxAge = [600, 86_400].randomElement(using: &random)!
    if random.oneIn(5) { flap = [60, 601].randomElement(using: &random)! }
    if random.oneIn(4) { wakefulness = Int64.random(in: 1000...9000, using: &random) }
    if random.oneIn(4) { (perMinute, perDay) = (6, 300) }
    if random.oneIn(3) { kept = 2 }
    hasLocalDNS = random.oneIn(2)
  }
}

/// Numbers that depend on a seed and their purpose alone, not on what was drawn before.
func lifeNumber(_ seed: UInt64, _ purpose: UInt64, _ index: Int64 = 0, _ more: Int64 = 0) -> UInt64 {
  var first = SeededGenerator(seed: seed ^ purpose &* 0x9E6C_63D0_876A_9A47)
  var second = SeededGenerator(seed: first.next() ^ UInt64(bitPattern: index))
  var third = SeededGenerator(seed: second.next() ^ UInt64(bitPattern: more))
  return third.next()
}
