// NameLedger.swift -- counts the transfers and the cache hits of the busiest names.
//
// Resolver's loop only. It costs the hot path nothing, since an entry counts its hits anyway. Those of an entry that is
// replaced or removed are added up then; those of the other entries by a survey of the cache, in steps.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Upstreams

/// The counters of one name and type.
package struct NameReport: Sendable {
  /// The name, in lower case.
  package var name: DomainName
  /// The type; 0 for NXDOMAIN, which is valid for every type.
  package var type: RecordType
  /// How long the counters have been running.
  package var time: Duration
  /// The counters, including the hits of entries that are still in the cache.
  package var counts: NameCounts
}

/// Counters for each of the busiest names. Resolver's loop only.
package final class NameLedger: TransferObserver {
  /// The number of names and types in a report.
  package static let most = 1000
  /// Sums over all names, except `cacheDnsNum`, which stays 0.
  package private(set) var totals = NameCounts()
  private let cache: MessageCache
  private let loop: any Loop
  private var table: BusyNameTable
  private var readings: [Reading] = []
  /// The report that is in progress.
  private var reporting: Task<[NameReport], Never>?

  /// A survey of the hits of all cache entries.
  private final class Reading {
    /// Hits by row.
    var live: [UInt64: UInt64] = [:]
    /// The hits of each visited entry in `live`, by the entry's hash: when the entry goes, they move to its row.
    var seen: [UInt64: (row: UInt64, hits: UInt64)] = [:]
    /// The hashes of entries that have gone after their visit: the survey does not visit their replacements.
    var passed: Set<UInt64> = []
  }

  package init(of cache: MessageCache, on loop: any Loop, most: Int = NameLedger.most) {
    self.cache = cache
    self.loop = loop
    table = BusyNameTable(most: most)
    cache.reportDepartures { [weak self] in self?.departed($0) }
  }

  /// Counts each question of a completed transfer.
  package func asked(_ asked: AskedQuestions, _ result: Result<ProviderReplies, UpstreamFailure>, time: Duration) {
    loop.assertCurrent()
    asked.forEachQuestion { question in
      let failure = NameLedger.failure(of: question, result)
      let rtt = failure.map { $0.report != nil } ?? true ? time.nanoseconds : nil
      totals.asked(failure?.cause, rtt: rtt)
      count(question.name, type: question.type.rawValue) { $0.counts.asked(failure?.cause, rtt: rtt) }
    }
  }

  /// Counts questions that were not sent: the provider is not in use, or one of our own limits was reached.
  package func wereRefusedHere(_ asked: AskedQuestions) {
    loop.assertCurrent()
    asked.forEachQuestion { question in
      totals.wasRefusedHere()
      count(question.name, type: question.type.rawValue) { $0.counts.wasRefusedHere() }
    }
  }

  /// Counts a question to LocalDNS instead of a provider.
  package func wentToLocalDNS(_ question: HTTPDNSQuestion, _ result: Result<UpstreamAnswer, UpstreamFailure>) {
    loop.assertCurrent()
    let isAnswered = (try? result.get()) != nil
    totals.wentToLocalDNS(isAnswered: isAnswered)
    count(question.name, type: question.type.rawValue) { $0.counts.wentToLocalDNS(isAnswered: isAnswered) }
  }

  /// Notes that an answer was cached under a hash.
  ///
  /// - Parameters:
  ///   - type: the type in the key; `CacheKey.everyType` for NXDOMAIN.
  ///   - hits: the hits that the entry inherits from the one before it, which has counted them already.
  package func stored(_ name: DomainName, type: UInt16, as hash: UInt64, inheriting hits: UInt32) {
    loop.assertCurrent()
    count(name, type: type) { row in
      row.entry = hash
      row.inherited += UInt64(hits)
    }
    guard hits > 0 else { return }
    for reading in readings where reading.passed.contains(hash) {
      let row = key(name: name.octets, type: type)
      reading.live[row, default: 0] += UInt64(hits)
      reading.seen[hash] = (row, UInt64(hits))
    }
  }

  /// The busiest names, the busiest one first. Call it from a task that prefers the loop. Callers that come while a report is
  /// in progress share it: thirty surveys at once would take thirty times as long.
  ///
  /// - Complexity: O(n) in the number of cache entries, in steps between which the loop answers queries.
  package func report() async -> [NameReport] {
    loop.assertCurrent()
    if let reporting { return await reporting.value }
    let task = loop.startTask { [self] in
      defer { reporting = nil }
      return await survey()
    }
    reporting = task
    return await task.value
  }

  private func survey() async -> [NameReport] {
    let reading = Reading()
    readings.append(reading)
    defer { readings.removeAll { $0 === reading } }
    var survey = CacheSurvey(of: cache)
    await loop.inPortions {
      for _ in 0..<MessageCache.stepsInTurn where !survey.isDone {
        survey.advance(steps: 1) { look(at: $0, hash: $1, reading) }
        prune()
      }
      return survey.isDone
    }
    let now = loop.now
    let reports = table.all.map { row in
      var counts = row.counts
      counts.cacheDnsNum += reading.live[key(name: row.name, type: row.type)] ?? 0
      counts.cacheDnsNum -= min(row.inherited, counts.cacheDnsNum)
      return NameReport(
        name: DomainName(unchecked: row.name), type: RecordType(row.type),
        time: now - BootInstant(nanoseconds: row.since), counts: counts)
    }
    return Array(reports.sorted { $0.isBusier(than: $1) }.prefix(table.most))
  }

  /// Adds the hits of an entry to a survey. Called with a lock of the cache held.
  private func look(at record: CacheRecord, hash: UInt64, _ reading: Reading) {
    guard record.hits > 0, let octets = CacheKey.nameAndType(of: record.key) else { return }
    let row = cache.hash(of: octets)
    guard isCounted(row: row, octets, hits: record.hits, entry: hash) else { return }
    reading.live[row, default: 0] += UInt64(record.hits)
    reading.seen[hash] = (row, UInt64(record.hits))
  }

  /// Adds up the hits of an entry that was replaced or removed. Called with a lock of the cache held.
  private func departed(_ entry: DepartedEntry) {
    guard let octets = CacheKey.nameAndType(of: entry.key) else { return }
    let row = cache.hash(of: octets)
    for reading in readings {
      guard let seen = reading.seen.removeValue(forKey: entry.hash) else { continue }
      reading.live[seen.row]? -= seen.hits
      reading.passed.insert(entry.hash)
    }
    guard isCounted(row: row, octets, hits: entry.hits, entry: entry.hash) else { return }
    table.change(row) { $0.counts.cacheDnsNum += UInt64(entry.hits) }
  }

  /// Whether there is a row. Creates one if the hits deserve it and there is room until the next pruning, which cannot
  /// run while the lock is held.
  private func isCounted(row: UInt64, _ octets: UnsafeBufferPointer<UInt8>, hits: UInt32, entry: UInt64) -> Bool {
    guard !table.contains(row) else { return true }
    guard UInt64(hits) > table.threshold, table.count < 2 * table.most else { return false }
    let (name, type) = (octets.dropLast(2), octets.suffix(2).reduce(0) { $0 << 8 | UInt16($1) })
    table.count(row, name: Array(name), type: type, now: loop.now.nanoseconds) { $0.entry = entry }
    return true
  }

  private func count(_ name: DomainName, type: UInt16, _ body: (inout BusyNameTable.Row) -> Void) {
    table.count(key(name: name.octets, type: type), name: name.octets, type: type, now: loop.now.nanoseconds, body)
    prune()
  }

  /// The key of a row: the hash of name and type, as at the beginning of a cache key.
  private func key(name: [UInt8], type: UInt16) -> UInt64 {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: name.count + 2) { octets in
      let end = octets.initialize(fromContentsOf: name)
      octets.initializeElement(at: end, to: UInt8(type >> 8))
      octets.initializeElement(at: end + 1, to: UInt8(truncatingIfNeeded: type))
      return cache.hash(of: UnsafeBufferPointer(octets))
    }
  }

  private func prune() {
    guard table.isFull else { return }
    table.prune { row in row.entry == 0 ? 0 : cache.state(hash: row.entry).map { UInt64($0.hits) } ?? 0 }
    for reading in readings {
      reading.live = reading.live.filter { table.contains($0.key) }
      reading.seen = reading.seen.filter { table.contains($0.value.row) }
    }
  }

  /// The failure of one question of a transfer; nil if it has an answer.
  private static func failure(
    of question: HTTPDNSQuestion, _ result: Result<ProviderReplies, UpstreamFailure>
  ) -> UpstreamFailure? {
    switch result {
    case .success(let replies):
      if case .failure(let reason) = replies.answer(to: question) { UpstreamFailure(reason) } else { nil }
    case .failure(let failure): failure
    }
  }
}

extension NameReport {
  /// Whether it has more activity; names with equal activity are in order of name and type.
  fileprivate func isBusier(than other: NameReport) -> Bool {
    let (mine, others) = (counts.activity, other.counts.activity)
    guard mine == others else { return mine > others }
    guard name.octets == other.name.octets else { return name.octets.lexicographicallyPrecedes(other.name.octets) }
    return type.rawValue < other.type.rawValue
  }
}
