// ResolverConsole.swift -- reports on the resolver, diagnosis, and work on all cached answers, in turns of the loop.
//
// Resolver's loop only. Other files have the reports.

import DNSWire
import EventLoop
import HTTPDNS
import MessageCache
import Ranking
import Refresh
import Routing
import Upstreams

/// The cache and what else describes its entries; refresher and ranker are those of the moment of the call.
/// `Resolver.console` passes it, in a task that prefers the loop.
package struct ResolverConsole {
  let cache: MessageCache
  let store: AnswerStore
  let network: CurrentNetwork
  let loop: any Loop
  let memory: UpstreamMemory
  let local: (any LocalUpstream)?
  let refresher: Refresher?
  let ranker: Ranker?
  /// The rules in use.
  let table: RouteTable?

  var configuration: ResolverConfiguration { store.configuration }
  var upstreams: [any Upstream] { configuration.upstreams }

  /// Uses something of each entry that exists the whole time.
  ///
  /// - Parameters:
  ///   - pick: what is used of an entry; nil for nothing. Called with a lock held: it must be brief and must not use the
  ///     cache.
  ///   - use: may use the cache.
  /// - Complexity: O(n) in the number of entries.
  private func tour<Picked>(_ pick: (CacheRecord, UInt64) -> Picked?, use: (Picked) -> Void) async {
    var survey = CacheSurvey(of: cache)
    await loop.inPortions {
      var found: [Picked] = []
      survey.advance { if let picked = pick($0, $1) { found.append(picked) } }
      for picked in found { use(picked) }
      return survey.isDone
    }
  }

  /// The cached types of a name on the current network; 0 stands for NXDOMAIN.
  ///
  /// - Complexity: O(n) in the number of cache entries.
  package func cachedTypes(of name: DomainName) async -> Set<RecordType> {
    let entries = await entries(of: NameSelection([name], andBelow: false)).entries
    return Set(entries.filter { $0.parts.name == name && isHere($0.parts) }.map { RecordType($0.parts.scope.type) })
  }

  // MARK: After the start

  /// Notes the names of all entries after the cache file was read.
  package func learnNames() async {
    store.namesBelow.isWhole = false
    await tour { record, _ -> (key: [UInt8], end: Int64)? in
      record.isNXDOMAIN ? nil : (Array(record.key), record.life.expiry(storedAt: record.storedAt))
    } use: { key, end in
      guard let parts = KeyParts(key) else { return }
      store.namesBelow.note(parts.name, parts.scope, until: BootInstant(nanoseconds: end))
    }
    store.namesBelow.isWhole = true
  }

  /// Measures answers that were cached before, from the cache file or under earlier settings: those of listed names and
  /// of the keep list now, others when they are used.
  package func rankCachedAnswers() async {
    guard ranker?.measures == true else { return }
    let types = [RecordType.a, .aaaa].map(\.rawValue)
    await tour { record, hash -> (key: [UInt8], hash: UInt64)? in
      guard record.answers > 0, let type = record.type, types.contains(type) else { return nil }
      return (Array(record.key), hash)
    } use: { key, hash in
      guard let ranker, let parts = KeyParts(key), parts.subnet.family == 0 else { return }
      let type = RecordType(rawValue: parts.scope.type)
      let question = HTTPDNSQuestion(name: parts.name, type: type)
      ranker.stored(parts.name, type, hash: hash, isKept: refresher?.isOnKeepList(question) ?? false)
    }
  }

  func take(_ batch: ReportBatch) -> ReportOutcome {
    guard let ranker, ranker.takesReports else { return .off }
    guard ranker.mayTake(batch.reports.count) else { return .tooMany }
    let counted = batch.reports.count { report in
      ranker.take(report, answers: answers(to: report.name, isIPv6: report.address.isIPv6)) != nil
    }
    return .taken(counted: counted, unknown: batch.reports.count - counted)
  }

  /// The hashes of the keys of cached answers to a name on the current network. Answers for one client subnet are left
  /// out, since they are not measured either.
  private func answers(to name: DomainName, isIPv6: Bool) -> [UInt64] {
    var hashes: Set<UInt64> = []
    for route in configuration.settings.routes {
      for flags in 0..<4 {
        let question = HTTPDNSQuestion(
          name: name, type: isIPv6 ? .aaaa : .a, dnssecOK: flags & 1 != 0, checkingDisabled: flags & 2 != 0)
        let hash = store.question(question, configuration, route).key.keyedHash
        if cache.state(hash: hash) != nil { hashes.insert(hash) }
      }
    }
    return Array(hashes)
  }
}
