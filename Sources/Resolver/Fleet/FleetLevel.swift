// FleetLevel.swift -- the second level of the cache: answers and leases that the daemons of a site share in a store.
//
// It helps or it is absent: nothing here waits longer than `fleet.timeout` for the store, and nothing at all while the store
// is down. Resolver's loop only.

import DNSWire
import EventLoop
import Fleet
import Frontend
import HTTPDNS
import Store
import Telemetry

/// Shares answers with the other daemons of a site.
package final class FleetLevel {
  /// How a daemon takes part.
  package struct Settings: Sendable {
    /// The names of keys, and the seals.
    package var keys: FleetKeys
    /// How long an answer waits for the store at most, all exchanges together (`fleet.timeout`).
    package var timeout = Duration.milliseconds(20)
    /// How long it waits for another daemon that asks already (`fleet.wait`).
    package var wait = Duration.milliseconds(150)
    /// Whether `units_per_day` counts for the fleet (`fleet.units`).
    package var sharesUnits = true

    /// Creates settings with the defaults of the configuration.
    package init(keys: FleetKeys) { self.keys = keys }
  }

  /// What a look at the store has brought.
  enum Look<Answer> {
    /// Another daemon's answer, which has passed every check.
    case found(Answer)
    /// This daemon asks the provider for all of them.
    case leads
    /// The store does not help: this daemon asks the provider for itself.
    case alone
  }

  /// What a look at the store before a refresh has brought.
  enum RefreshLook<Answer> {
    /// Another daemon's younger answer.
    case found(Answer)
    /// This daemon refreshes for all of them.
    case leads
    /// Another daemon is refreshing, and there is time to wait for it.
    case waits
    /// The store does not help, or the other daemon has not refreshed: this daemon does.
    case alone
  }

  let loop: any Loop
  let link: any StoreLink
  var settings: Settings
  var counters = FleetCounters()
  /// The store's clock.
  var clock = StoreClock()
  /// The difference of the store's clock that the log knows, in seconds; nil if it knows none.
  var loggedDifference: Int64?
  /// When the store was asked for its time, if it has not answered yet.
  var timeAskedAt: BootInstant?
  /// How often it has answered since the clock was due, and the shortest round trip of that: the estimate is of that one.
  var measurements = 0
  var shortestRoundTrip: Duration?
  var flushes = FlushLog()
  /// How far the stream of flushes has been read over this connection.
  var flushReading = FlushReading.away
  /// Until when values of the store may have been used since then, in milliseconds of the store's clock; nil if none was.
  var usedUntil: Int64?
  /// Whether it was ever current; what the cache has from before may be of the store as well.
  var wasCurrent = false
  let createdAt: BootInstant
  /// The ID of the last entry of the stream of flushes that is known.
  var lastFlush = FleetLevel.firstEntry
  /// Flushes that were read since it was current, how many entries that were, and the time of the first one over this
  /// connection.
  var backlog = FlushBatch()
  var backlogCount = 0
  var backlogBegin: Int64?
  /// When flushes were carried out for which nobody had shown the secret.
  var recentFlushes: [BootInstant] = []
  /// When an entry that is no flush for this daemon was last logged.
  var refusalLoggedAt: BootInstant?
  /// Flushes beyond those, and the timer that carries them out.
  var waitingFlushes = FlushBatch()
  let flushTimer = OwnedTimer()
  /// Which sealed flushes of others are new.
  var noteOrder = NoteOrder()
  /// When this daemon sent its latest flush, in milliseconds of the store's clock.
  var announcedAt = Int64.min
  /// Flushes that are carried out in the cache together, the timer for that, and when it was last done.
  var nextFlushes = FlushBatch()
  let walkTimer = OwnedTimer()
  var flushedAt: BootInstant?
  /// Carries out a flush of another daemon in this one's cache.
  var flushHere: ((RemoteFlush) -> Void)?
  /// Called when the store has lost its data: its stream begins again.
  package var onLoss: (() -> Void)?
  /// The units of each account.
  var units: [String: FleetUnits] = [:]
  /// What the store has counted of this daemon's units, across restarts.
  let ledger: FleetLedger
  /// The accounts whose units have a limit, and those of them whose counter is being read.
  package var limitedAccounts: Set<String> = []
  var accountsBeingRead: Set<String> = []
  /// Whether the store has been asked on this connection whether it has lost its data.
  var isEpochKnown = false
  /// Begins a report by what the connections know.
  package var describe: () -> FleetReport? = { nil }
  /// How many daemons there were at the last sign of life.
  var memberCount: Int?
  /// When they were counted.
  var countedAt: BootInstant?
  /// When this daemon last gave a sign of life over this connection.
  var heartbeatAt: BootInstant?
  let presence = OwnedTimer()
  /// Counts the daemons again that started at the same time.
  let recountTimer = OwnedTimer()
  let member: FleetMember
  /// What this daemon signs its flushes with: 16 random octets.
  let identity: [UInt8]
  let log: @Sendable (FleetNote) -> Void
  /// A number from 0 to 1, so that daemons that wait for another one do not look at the same time.
  var jitter: () -> Double = { .random(in: 0...1) }
  private var writes = WriteQueue()
  private var writing = 0
  /// Looks that wait for the store.
  private var looking = 0
  /// Questions whose lease this daemon holds, and whether the answer is in `writes`.
  private var leases: [FleetQuestion: Bool] = [:]
  let writeTimer = OwnedTimer()

  /// The most looks that wait for the store at once; further ones do without it. The link allows 256 commands.
  private static let mostLooking = 64
  /// The most writes without a reply.
  private static let mostWriting = 64
  /// For how much longer than the provider's timeout a lease lasts.
  private static let leaseMargin = Duration.milliseconds(500)
  /// The shortest lifetime of an answer that is shared, in seconds.
  private static let shortestLifetime: UInt32 = 2
  /// By how much another answer must outlive the present one, in milliseconds: clocks are estimated.
  private static let youngerBy: Int64 = 1_000
  /// By how much the time of a transfer may lengthen the life of a value, in milliseconds.
  private static let longestTransfer: Int64 = 5_000

  /// - Parameters:
  ///   - identity: 16 random octets of this daemon.
  ///   - member: this daemon as others see it.
  ///   - ledger: knows what the store has counted of this daemon's units before.
  ///   - note: takes lines for the log.
  package init(
    _ settings: Settings, over link: any StoreLink, on loop: any Loop, identity: [UInt8], member: FleetMember,
    ledger: FleetLedger = FleetLedger(), note: @escaping @Sendable (FleetNote) -> Void
  ) {
    self.settings = settings
    self.link = link
    self.loop = loop
    createdAt = loop.now
    self.identity = identity
    self.member = member
    self.ledger = ledger
    log = note
  }

  var keys: FleetKeys { settings.keys }

  // MARK: Looking

  /// Looks for an answer of another daemon; if there is none, tries to become the one that asks.
  ///
  /// - Parameters:
  ///   - providerTimeout: how long the provider may take to reply.
  ///   - median: its median round trip, asked for if another daemon is waited for; nil if it is not known.
  ///   - read: turns a value into an answer, or says why it is none.
  func look<Answer>(
    for question: FleetQuestion, providerTimeout: Duration, median: @autoclosure () -> Duration?,
    _ read: (FleetValue) throws(FleetRejection) -> Answer
  ) async -> Look<Answer> {
    loop.assertCurrent()
    renewPresenceIfDue()
    guard isUsable else {
      link.requestUse()
      counters.count(.open)
      return .alone
    }
    if looking < FleetLevel.mostLooking { readUnits() }
    var left = settings.timeout
    let key = keys.answer(question)
    let first = await get(key, question, &left, read)
    guard !first.isFinal else { return found(first) }
    switch await lease(question, providerTimeout, &left) {
    case .won:
      counters.count(first.result)
      counters.leases.won += 1
      return .leads
    case .lost: counters.leases.lost += 1
    case .none:
      counters.count(first.result)
      counters.leases.failed += 1
      return .alone
    }
    let pauses = LeaseWait(
      longest: settings.wait.nanoseconds, median: median()?.nanoseconds, random: jitter())
    for pause in pauses {
      await loop.sleep(for: .nanoseconds(pause))
      guard isUsable else { break }
      let next = await get(key, question, &left, read)
      guard !next.isFinal else { return found(next) }
    }
    counters.count(first.result)
    counters.leases.expired += 1
    return .alone
  }

  private func found<Answer>(_ found: Found<Answer>) -> Look<Answer> {
    counters.count(found.result)
    guard case .answer(let answer) = found else { return .alone }
    return .found(answer)
  }

  /// Looks for an answer that is younger than the present one; if there is none, tries to become the one that refreshes.
  ///
  /// - Parameters:
  ///   - expiresAt: the end of the present answer, in nanoseconds; nil if there is none.
  ///   - mayWait: whether another daemon may be waited for.
  func refresh<Answer>(
    _ question: FleetQuestion, providerTimeout: Duration, expiresAt: Int64?, mayWait: Bool,
    _ read: (FleetValue) throws(FleetRejection) -> Answer
  ) async -> RefreshLook<Answer> {
    loop.assertCurrent()
    renewPresenceIfDue()
    guard isUsable, let now = clock.time(at: loop.now.nanoseconds) else {
      link.requestUse()
      return .alone
    }
    readUnits()
    let end = expiresAt.map { now + ($0 - loop.now.nanoseconds) / 1_000_000 + FleetLevel.youngerBy }
    var left = settings.timeout
    let look = await get(keys.answer(question), question, &left) { value throws(FleetRejection) -> Answer? in
      if let end, value.expires <= end { return nil }
      return try read(value)
    }
    switch look {
    case .answer(let answer?): return .found(answer)
    case .answer(nil), .nothing, .rejected: break
    case .failed: return .alone
    }
    switch await lease(question, providerTimeout, &left) {
    case .won: return .leads
    case .lost where mayWait: return .waits
    case .lost, .none: return .alone
    }
  }

  /// Whether the store can be asked: it is there, its clock is known and believable, and so are all flushes.
  var isUsable: Bool {
    if clock.isDue(at: loop.now.nanoseconds) { askTime() }
    guard link.isUp, flushReading == .current, clock.time(at: loop.now.nanoseconds) != nil else { return false }
    // A store that lies about the time could make old values live. Without a secret it can invent new ones as well.
    return !(clock.isOff && keys.hasSecret)
  }

  /// What a GET has brought.
  private enum Found<Answer> {
    case answer(Answer)
    case nothing
    /// A value that did not pass a check.
    case rejected
    case failed(FleetResult)

    var result: FleetResult {
      switch self {
      case .answer: .hit
      case .nothing: .miss
      case .rejected: .rejected
      case .failed(let result): result
      }
    }

    /// Whether the store is not asked further.
    var isFinal: Bool {
      switch self {
      case .answer, .failed: true
      case .nothing, .rejected: false
      }
    }
  }

  /// Gets a value.
  ///
  /// - Parameter left: the rest of the time that an answer may wait for the store.
  private func get<Answer>(
    _ key: [UInt8], _ question: FleetQuestion, _ left: inout Duration,
    _ read: (FleetValue) throws(FleetRejection) -> Answer
  ) async -> Found<Answer> {
    switch await exchange([FleetLevel.get, key], &left) {
    case .success(.bulk(let octets)):
      // The stream of flushes may have ended meanwhile.
      guard isUsable else { return .failed(.open) }
      do throws(FleetRejection) {
        return .answer(try read(self.value(octets, key, question)))
      } catch {
        counters.rejected[error, default: 0] += 1
        return .rejected
      }
    case .success(.null): return .nothing
    case .success: return .failed(.error)
    case .failure(let failure): return .failed(FleetResult(failure))
    }
  }

  private func value(
    _ octets: [UInt8], _ key: [UInt8], _ question: FleetQuestion
  ) throws(FleetRejection) -> FleetValue {
    guard let now = clock.time(at: loop.now.nanoseconds) else { throw .lifetime }
    let value = try FleetValue(octets, for: key, keys, question: question, now: now)
    guard !flushes.covers(question.name, stored: value.stored) else { throw .flushed }
    return value
  }

  private enum Lease { case won, lost, none }

  private func lease(_ question: FleetQuestion, _ providerTimeout: Duration, _ left: inout Duration) async -> Lease {
    guard link.mayWrite else { return .none }
    let time = (providerTimeout + FleetLevel.leaseMargin).nanoseconds / 1_000_000
    let words = [
      FleetLevel.set, keys.lease(question), identity, FleetLevel.ifAbsent, FleetLevel.milliseconds,
      Array("\(time)".utf8),
    ]
    switch await exchange(words, &left) {
    case .success(.status):
      leases[question] = false
      return .won
    case .success(.null): return .lost
    case .success, .failure: return .none
    }
  }

  /// This daemon has asked the provider. If it holds the lease and has nothing to write, the next daemon may ask.
  func releaseLease(_ question: FleetQuestion) {
    if leases[question] == false { release(question) }
  }

  private func release(_ question: FleetQuestion) {
    guard leases.removeValue(forKey: question) != nil, link.isUp else { return }
    link.post([FleetLevel.delete, keys.lease(question)], nil)
  }

  private func exchange(_ words: [[UInt8]], _ left: inout Duration) async -> Result<RESPValue, StoreFailure> {
    guard left > .zero else { return .failure(.timeout) }
    guard looking < FleetLevel.mostLooking else { return .failure(.tooManyWaiting) }
    looking += 1
    defer { looking -= 1 }
    let began = loop.preciseNow
    let result = await withCheckedContinuation { continuation in
      link.call(words, timeout: left) { continuation.resume(returning: $0) }
    }
    let took = loop.preciseNow - began
    left -= took
    if case .success = result { counters.latency.observe(took) }
    return result
  }

  // MARK: Reading and writing values

  /// What a value says about a question: the provider's answer with what is left of its TTLs.
  ///
  /// - Parameters:
  ///   - lifetime: how long this daemon would keep an answer with such records, in seconds; nil if it would not.
  /// - Returns: the answer, and the seconds that are left of the value.
  func answer(
    _ value: FleetValue, to question: HTTPDNSQuestion, lifetime: (HTTPDNSAnswer) -> UInt32?
  ) throws(FleetRejection) -> (answer: HTTPDNSAnswer, rest: UInt32) {
    guard let now = clock.time(at: loop.now.nanoseconds) else { throw .lifetime }
    var answer: HTTPDNSAnswer
    do throws(HTTPDNSFailure) {
      answer = try HTTPDNSAnswer(value.message, to: question)
    } catch { throw .records }
    guard answer.responseCode == .noError || answer.responseCode == .nxDomain else { throw .records }
    (answer.scopePrefixLength, answer.extendedError) = (value.scope, value.extendedError)
    answer.isAuthenticated = value.message.header.ad
    guard let longest = lifetime(answer).map({ Int64($0) * 1_000 }) else { throw .records }
    guard value.expires - value.stored <= longest + FleetLevel.longestTransfer,
      value.expires - now <= longest + FleetValue.tolerance
    else { throw .lifetime }
    // Rounded so that no record outlives the value.
    let rest = UInt32(clamping: min(value.expires - now, longest) / 1_000)
    let age = UInt32(clamping: (now - value.stored + 999) / 1_000)
    func aged(_ records: [ResourceRecord]) -> [ResourceRecord] {
      records.map { record in
        var record = record
        record.ttl = max(rest, record.ttl > age ? record.ttl - age : 0)
        return record
      }
    }
    (answer.answers, answer.authorities) = (aged(answer.answers), aged(answer.authorities))
    return (answer, rest)
  }

  /// Shares a provider's answer, after the clients have been answered.
  ///
  /// - Parameters:
  ///   - lifetime: how long this daemon keeps it, in seconds.
  ///   - sentAt: when the provider was asked: a flush after that covers the answer.
  func publish(
    _ answer: HTTPDNSAnswer, to question: FleetQuestion, from provider: String, lifetime: UInt32, sentAt: BootInstant
  ) {
    guard let write = write(of: answer, to: question, from: provider, lifetime: lifetime, sentAt: sentAt) else {
      return
    }
    if leases[question] != nil { leases[question] = true }
    for dropped in writes.add(write) { release(dropped.question) }
    if !writeTimer.isSet { writeTimer.set(after: .zero, on: loop, for: self) { $0.write() } }
  }

  /// The value of a provider's answer; nil if it is not shared.
  private func write(
    of answer: HTTPDNSAnswer, to question: FleetQuestion, from provider: String, lifetime: UInt32, sentAt: BootInstant
  ) -> WriteQueue.Write? {
    guard lifetime >= FleetLevel.shortestLifetime, !answer.isEmptyAmbiguous, isUsable,
      answer.responseCode == .noError || answer.responseCode == .nxDomain,
      answer.scopePrefixLength ?? 0 <= question.subnet?.length ?? 0,
      let now = clock.time(at: loop.now.nanoseconds), let stored = clock.time(at: sentAt.nanoseconds)
    else { return nil }
    guard link.mayWrite else {
      counters.failedWrites += 1
      return nil
    }
    var header = Header()
    header.qr = true
    header.ad = answer.isAuthenticated
    header.rcode = UInt8(truncatingIfNeeded: answer.responseCode.rawValue)
    let message = Message(
      id: 0, header: header, questions: [Message.Entry(Question(name: question.name, type: question.type))],
      answers: answer.answers, authorities: answer.authorities)
    let life = Int64(lifetime) * 1_000
    let value = FleetValue(
      message: message, scope: answer.scopePrefixLength, extendedError: answer.extendedError, stored: stored,
      expires: now + life, provider: provider)
    let key = keys.answer(question)
    return value.octets(for: key, keys).map {
      WriteQueue.Write(question: question, key: key, value: $0, lifetime: life)
    }
  }

  private func write() {
    while writing < FleetLevel.mostWriting, link.isUp, link.mayWrite, let next = writes.next() {
      writing += 1
      let words = [
        FleetLevel.set, next.key, next.value, FleetLevel.milliseconds, Array("\(next.lifetime)".utf8),
      ]
      link.post(words) { [weak self] result in
        guard let self else { return }
        writing -= 1
        if case .success = result { counters.writes += 1 } else { counters.failedWrites += 1 }
        write()
      }
      // Whoever waits for the lease finds the answer now.
      release(next.question)
    }
  }

  /// Values from before the store was away are not written after newer ones of others.
  func dropWrites() {
    // The leases have ended by themselves, or do so soon.
    for dropped in writes.removeAll() { leases[dropped.question] = nil }
  }

  /// Values that had to make room for newer ones, or came before the store was away.
  var droppedWrites: UInt64 { writes.dropped }

  static let get = Array("GET".utf8)
  static let set = Array("SET".utf8)
  static let delete = Array("DEL".utf8)
  static let ifAbsent = Array("NX".utf8)
  static let milliseconds = Array("PX".utf8)
}
