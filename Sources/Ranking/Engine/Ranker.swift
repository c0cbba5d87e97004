// Ranker.swift -- measures the addresses of names in use in the background, and orders cached answers.
//
// No client waits for a measurement, and the hot path does not change: it serves the cached order, in which the best addresses
// take turns at the front. So an answer is ordered by earlier measurements when it is stored, and the cached answer is ordered
// again when a round of measurements has ended.
//
// 1. `arrange` orders a new answer before it is stored. It may also shorten the answer (`ranking.answers`) or replace it by
//    NODATA (`ranking.families`); the entry then keeps the omitted addresses, which are measured like the others.
// 2. `stored` makes an entry for the answer, if its name is to be measured and there is more than one address to choose from,
//    counting those of the other family if families are compared.
// 3. A timer looks at entries from time to time. If the answer had hits since its last measurement, a round begins;
//    otherwise the next look follows, at growing intervals up to a minute. Names of `ranking.domains` are measured at once when
//    they are stored, those of the keep list in every interval, both without hits. An entry ends with its answer; that of a
//    name of the keep list ends when the cache has the answer no longer.
// 4. A round measures at most eight addresses, each by the first kind of probe that the address answers (`ProbeRounds`). All
//    answers share the probes: an address that two names have is measured once in an interval. If there are too many, names
//    that are used more go first.
// 5. After a round the answer is ordered, the families are compared (`FamilyChoice`), and the next look is planned: after the
//    interval, or after five seconds for an address that has failed once.
//
// Reports of programs (`AddressReports`) put an address last for a while, unless that leaves none, or end that. After a
// change of network all failures are forgotten, withheld answers are restored, and each name is measured again when it is
// next used.
//
// A DNS answer must not make the daemon scan hosts: `RankingSettings.mayMeasure` excludes private addresses for names that
// are not listed, the number of probes in a minute is limited, and clients and domains have shares of the entries.
//
// Invariants: `entryCounts` has the number of entries of each client and each domain. Each entry has at least one element in
// `looks` with its `dueAt`, or a round in progress; elements with another time are outdated. Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import FairShares
import MessageCache

/// Measures addresses and orders answers. The resolver owns it.
package final class Ranker {
  /// The state of an answer that is measured while it is used.
  struct Entry {
    /// Hits of the answer at its last measurement. Further hits mean that the answer is in use.
    var hits: UInt32
    /// When it was last measured; nil if it was not measured on this network.
    var measuredAt: Int64?
    /// When the next look is due.
    var dueAt: Int64
    /// The time between two looks while the answer is not used.
    var wait: Int64
    /// Whether the next look measures it even without a hit.
    var isEager: Bool
    var isIPv6: Bool
    /// Whether its name is on the keep list: it is measured even without a hit.
    var isKept: Bool
    /// The client and the domain that its probes are charged to; empty for the daemon's own names.
    var shares: [UInt64]
    /// The hash of the key of the name's answer for the other family, if the families are compared.
    var partner: UInt64?
    var hidden: HiddenAddresses

    var all: [[UInt8]]? {
      get { hidden.all }
      set { hidden.all = newValue }
    }
  }

  /// The reports of programs.
  var reports: AddressReports
  /// The hashes of the keys of answers with reported addresses, by name.
  var reported: [DomainName: Set<UInt64>] = [:]
  let reportTimer = OwnedTimer()
  /// The beginning of the second in which reports are counted. `reportCount` is their number.
  var reportsSince: BootInstant
  var reportCount = 0

  let loop: any Loop
  let cache: MessageCache
  let network: CurrentNetwork
  package private(set) var settings: RankingSettings
  let rounds: ProbeRounds
  var entries: [UInt64: Entry] = [:]
  /// The number of entries for each client and domain.
  private var entryCounts: [UInt64: Int] = [:]
  private var looks = DueQueue()
  private let timer = OwnedTimer()
  private var timerAt = Int64.max
  private var isClosed = false

  /// Maximum answers that are measured.
  static let mostEntries = 10_000
  /// Maximum answers for one client or one domain, so that others can add some.
  static let mostEntriesOfOne = mostEntries * 3 / 4
  /// Maximum addresses of an answer that are measured.
  static let mostAddresses = 8
  private static let second: Int64 = 1_000_000_000
  /// The time from storing an answer to the first look.
  private static let firstLook = 2 * second
  /// The time between looks while the answer is not used, for `closeLooks` after it was stored.
  private static let (nextLook, closeLooks) = (3 * second, 30 * second)
  /// After `closeLooks` that time doubles with each look, up to this maximum.
  private static let longestWait = 60 * second
  /// The time after which an address that has failed once is measured again.
  private static let doubt = 5 * second + second / 10

  /// - Parameter log: logs a line.
  package init(
    _ settings: RankingSettings, of cache: MessageCache, _ network: CurrentNetwork, prober: any AddressProber,
    on loop: any Loop, log: @escaping @Sendable (String) -> Void
  ) {
    self.settings = settings
    self.cache = cache
    self.network = network
    self.loop = loop
    rounds = ProbeRounds(settings, on: network, prober: prober, loop: loop, log: log)
    reports = AddressReports(badFor: settings.section.badFor.nanoseconds)
    reportsSince = loop.now
    rounds.onEnd = { [weak self] in self?.ended($0) }
    rounds.onDisplaced = { [weak self] hash in
      if let self, let entry = entries[hash] { lookLater(hash, entry, Ranker.nextLook) }
    }
    rounds.onWait = { [weak self] in self?.arm() }
  }

  /// Whether any name is measured.
  package var measures: Bool { settings.measures }

  /// Whether an answer is measured while it is used.
  package func measures(_ hash: UInt64) -> Bool { entries[hash] != nil }

  /// Whether programs may report addresses.
  package var takesReports: Bool { settings.section.reports }

  private var now: Int64 { loop.now.nanoseconds }
  private var interval: Int64 { settings.section.interval.nanoseconds }

  // MARK: Answers in use

  /// Adds or updates the entry of an answer that was stored. It is measured after its first hit; if its name is listed
  /// in `ranking.domains` or on the keep list, it is measured immediately.
  ///
  /// - Parameter hidden: the addresses that the new answer omits; nil if the answer is not new.
  package func stored(
    _ name: DomainName, _ type: RecordType, hash: UInt64, isKept: Bool, for client: ClientKey = .ourselves,
    hiding hidden: HiddenAddresses? = nil
  ) {
    if let hidden { entries[hash]?.hidden = hidden }
    guard measures, type == .a || type == .aaaa else { return drop(hash) }
    let (kinds, isListed) = settings.measures(for: name)
    guard !kinds.isEmpty else { return drop(hash) }
    let isIPv6 = type == .aaaa
    let partner = comparesFamilies ? otherFamily(of: hash) : nil
    let hasBoth = partner.map { self.run(of: $0, isIPv6: !isIPv6) != nil } ?? false
    guard let run = run(of: hash, isIPv6: isIPv6, hidden), let state = cache.state(hash: hash),
      run.addresses.count > 1 || hasBoth, !measurable(run, isListed: isListed).isEmpty
    else { return drop(hash) }
    if var entry = entries[hash] {
      // A refresh inherits the progress of the previous entry.
      entry.hits = min(entry.hits, state.hits)
      (entry.isKept, entry.partner) = (isKept, partner)
      entries[hash] = entry
      return
    }
    let shares = isKept ? [] : [client.value, DomainKey(of: name).value].filter { $0 != 0 }
    // A shortened answer always gets an entry, since the entry holds its other addresses.
    guard hidden?.all != nil || mayAdd(shares) else { return }
    let isEager = isListed || isKept
    let due = now + (isEager ? 0 : Ranker.firstLook)
    entries[hash] = Entry(
      hits: state.hits, measuredAt: nil, dueAt: due, wait: Ranker.nextLook, isEager: isEager, isIPv6: isIPv6,
      isKept: isKept, shares: shares, partner: partner, hidden: hidden ?? HiddenAddresses())
    for share in shares { entryCounts[share, default: 0] += 1 }
    look(at: hash, due)
    if hasBoth, let partner, entries[partner] == nil {
      // The other answer came first and has one address. It is measured too, now that the families can be compared.
      stored(name, isIPv6 ? .a : .aaaa, hash: partner, isKept: isKept, for: client)
    }
  }

  private func mayAdd(_ shares: [UInt64]) -> Bool {
    entries.count < Ranker.mostEntries && shares.allSatisfy { entryCounts[$0, default: 0] < Ranker.mostEntriesOfOne }
  }

  /// Ends the measurement of an answer.
  private func drop(_ hash: UInt64) {
    guard let entry = entries.removeValue(forKey: hash) else { return }
    for share in entry.shares {
      let count = entryCounts[share, default: 1] - 1
      entryCounts[share] = count > 0 ? count : nil
    }
  }

  /// The addresses of a cached answer, with those that it omits; nil if it has no addresses of that family.
  ///
  /// - Parameter hidden: the addresses that it omits; nil to use those of its entry.
  package func run(of hash: UInt64, isIPv6: Bool, _ hidden: HiddenAddresses? = nil) -> AddressRun? {
    let hidden = hidden ?? entries[hash]?.hidden ?? HiddenAddresses()
    guard var run = cache.addressRun(octets: isIPv6 ? 16 : 4, hash: hash) else {
      guard hidden.withheld != nil, let all = hidden.all else { return nil }
      return AddressRun(addresses: all, rotating: nil)
    }
    if let all = hidden.all { run.addresses += all.filter { !run.addresses.contains($0) } }
    return run
  }

  private func measurable(_ run: AddressRun, isListed: Bool) -> [IPAddress] {
    run.addresses.prefix(Ranker.mostAddresses).compactMap { IPAddress(octets: $0) }
      .filter { settings.mayMeasure($0, isListed: isListed) }
  }

  /// The kinds of probes for a name, in order of preference.
  func kinds(for name: DomainName) -> [ProbeKind] { settings.measures(for: name).kinds }

  // MARK: Looks

  private func look(at hash: UInt64, _ due: Int64) {
    if looks.isCrowded { looks.compact { entries[$0.ticket]?.dueAt == $0.due } }
    looks.insert(hash, due: due)
    arm()
  }

  private func arm() {
    let next = min(looks.earliestDue ?? .max, rounds.waitingDue)
    guard !isClosed, next < timerAt || !timer.isSet && next < .max else { return }
    timer.cancel()
    timerAt = next
    timer.set(after: .nanoseconds(max(0, next - now)), on: loop, for: self) {
      $0.timerAt = .max
      $0.fire()
    }
  }

  private func fire() {
    loop.assertCurrent()
    let now = now
    while let element = looks.popFirst(dueBy: now) {
      guard let entry = entries[element.ticket], entry.dueAt == element.due else { continue }
      look(element.ticket, entry)
    }
    if rounds.waitingDue <= now { rounds.sendWaiting() }
    arm()
  }

  /// Measures an answer that has been used since its last measurement; otherwise looks again later.
  private func look(_ hash: UInt64, _ entry: Entry) {
    guard !rounds.contains(hash) else { return }
    guard let state = cache.state(hash: hash), now < state.expiresAt || state.isImmutable || entry.isEager else {
      return drop(hash)
    }
    guard entry.isEager || state.hits > entry.hits else {
      let isClose = now - state.storedAt < Ranker.closeLooks
      return lookLater(hash, entry, isClose ? Ranker.nextLook : min(Ranker.longestWait, entry.wait * 2))
    }
    guard rounds.hasRoom(for: state.hits &- entry.hits) else { return lookLater(hash, entry, Ranker.nextLook) }
    begin(hash, entry, state)
  }

  private func lookLater(_ hash: UInt64, _ entry: Entry, _ wait: Int64) {
    var entry = entry
    entry.wait = wait
    entry.dueAt = now + wait
    entries[hash] = entry
    looks.insert(hash, due: entry.dueAt)
  }

  // MARK: Rounds

  private func begin(_ hash: UInt64, _ entry: Entry, _ state: EntryState) {
    guard let parts = cache.key(hash: hash).flatMap({ KeyParts($0) }), let run = run(of: hash, isIPv6: entry.isIPv6)
    else { return drop(hash) }
    // The answer is from another network's resolver. On this network its addresses may be those of other machines.
    guard parts.scope.network == 0 || parts.scope.network == network.number else {
      return lookLater(hash, entry, Ranker.longestWait)
    }
    let name = parts.name
    let (kinds, isListed) = settings.measures(for: name)
    let addresses = measurable(run, isListed: isListed)
    guard !kinds.isEmpty, !addresses.isEmpty else { return drop(hash) }
    rounds.begin(
      ProbeRound(hash, name, isIPv6: entry.isIPv6, kinds, uses: state.hits &- entry.hits, shares: entry.shares),
      addresses)
  }

  /// Orders the answer by the measurements of its round, and plans the next one.
  private func ended(_ round: ProbeRound) {
    rearrange(round.hash, round.name, isIPv6: round.isIPv6)
    chooseFamily(after: round.hash, of: round.name)
    guard var entry = entries[round.hash] else { return }
    entry.measuredAt = now
    entry.hits = cache.state(hash: round.hash)?.hits ?? entry.hits
    entry.wait = Ranker.nextLook
    // After a single failure, the addresses are measured again even without a hit.
    entry.isEager = round.hasDoubt || entry.isKept
    entry.dueAt = now + (round.hasDoubt ? Ranker.doubt : interval)
    entries[round.hash] = entry
    look(at: round.hash, entry.dueAt)
  }

  // MARK: Changes

  /// Removes all failures and measures the names in use again, after a change or an outage of the network.
  package func networkHasChanged() {
    loop.assertCurrent()
    restoreAll()
    rounds.table.forgetFailures()
    rounds.forget()
    // The router, which identifies the network, may become known a moment later.
    let due = now + Ranker.second
    looks = DueQueue()
    for hash in entries.keys {
      entries[hash]?.measuredAt = nil
      entries[hash]?.dueAt = due
      looks.insert(hash, due: due)
    }
    arm()
  }

  /// Applies new settings, or retries what the kernel has refused. If no name is to be measured, all measurements are
  /// removed and their timer is cancelled.
  package func use(_ settings: RankingSettings) {
    loop.assertCurrent()
    guard settings != self.settings || rounds.prober.problem != nil else { return }
    restoreAll()
    if settings.section.answers != self.settings.section.answers || !settings.measures { showAll() }
    self.settings = settings
    reports.badFor = settings.section.badFor.nanoseconds
    rounds.use(settings)
    guard !settings.measures else { return networkHasChanged() }
    timer.cancel()
    timerAt = .max
    (entries, entryCounts, looks, rounds.table) = ([:], [:], DueQueue(), MeasurementTable())
  }

  /// Cancels all probes and timers.
  package func close() {
    isClosed = true
    timer.cancel()
    reportTimer.cancel()
    rounds.prober.cancelAll()
  }
}
