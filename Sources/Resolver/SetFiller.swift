// SetFiller.swift -- the addresses of answers into the firewall sets of their routes, before a client gets the answer.
//
// An address stays in a set for as long as the cache may hand it out, and `set_keep` longer. So hits need nothing.

import Configuration
import DNSWire
import EventLoop
import FirewallSets
import HTTPDNS
import MessageCache

/// The firewall sets of a route.
package struct RouteSets: Hashable, Sendable {
  package var names: [FirewallSetName]
  /// How long an address stays in them after its last answer has expired.
  package var keep: Duration
  /// Whether private addresses belong there: answers of LocalDNS that a rule asked for.
  package var includesPrivate: Bool

  package init(names: [FirewallSetName], keep: Duration, includesPrivate: Bool) {
    (self.names, self.keep, self.includesPrivate) = (names, keep, includesPrivate)
  }
}

/// Adds addresses of answers. Resolver's loop only.
package final class SetFiller {
  private let writer: SetWriter

  /// For how long the cache serves expired data before an upstream is asked again, in seconds.
  private static let staleTime: UInt32 = 30

  package init(_ writer: SetWriter) { self.writer = writer }

  /// Adds an answer's addresses.
  ///
  /// - Parameter completion: called when they are in the sets, or cannot be; after 50 ms at the latest.
  func add(_ answer: FinishedAnswer, to asked: ResolverQuestion, completion: @escaping () -> Void = {}) {
    let records = answer.response.message(to: Question(name: asked.question.name, type: asked.question.type))?.answers
    let seconds = max(answer.lifetime, records?.map(\.ttl).max() ?? 0)
    add(records ?? [], asked.route, seconds: seconds, completion: completion)
  }

  /// Adds the addresses of an expired answer that is served nevertheless.
  func addStale(_ answer: FinishedAnswer, to asked: ResolverQuestion) {
    let records = answer.response.message(to: Question(name: asked.question.name, type: asked.question.type))?.answers
    add(records ?? [], asked.route, seconds: SetFiller.staleTime) {}
  }

  /// Adds addresses of records that are valid for that many seconds.
  func add(_ records: [ResourceRecord], _ route: Route, seconds: UInt32, completion: @escaping () -> Void = {}) {
    guard let sets = route.sets else { return completion() }
    var lifetime = Duration.seconds(Int64(seconds)) + sets.keep
    if route.stale.mode == .immediate { lifetime += .seconds(Int64(route.stale.maxAge)) }
    // It never expires while the daemon runs; the writer has a limit of its own.
    if route.stale.isImmutable { lifetime = .seconds(Int64(UInt32.max)) }
    let addresses = records.flatMap(\.addresses).map { SetAddress($0, lifetime: lifetime) }
    guard !addresses.isEmpty else { return completion() }
    writer.add(addresses, to: sets.names, includingPrivate: sets.includesPrivate, completion: completion)
  }
}

extension ResourceRecord {
  /// The addresses of A, AAAA, and of the hints of HTTPS and SVCB.
  fileprivate var addresses: [IPAddress] {
    switch type {
    case .a, .aaaa: IPAddress(octets: rdata).map { [$0] } ?? []
    case .https, .svcb: ServiceHints(rdata).addresses.compactMap { IPAddress(octets: Array($0)) }
    default: []
    }
  }
}

extension ResolverConsole {
  /// The records of all cached answers whose route has one of these sets, each with the seconds for which they are valid.
  ///
  /// - Complexity: O(n) in the number of cache entries.
  package func refill(_ set: FirewallSetName, by filler: SetFiller) async {
    let routes = Set(configuration.settings.routes.filter { $0.sets?.names.contains(set) ?? false }.map(\.number))
    guard !routes.isEmpty else { return }
    await tour { record, _ -> (key: [UInt8], entry: CachedBody)? in
      guard let route = record.route, routes.contains(route), record.answers > 0 else { return nil }
      return (Array(record.key), CachedBody(record))
    } use: { key, entry in
      guard let parts = KeyParts(key), let route = configuration.route(parts.scope.route) else { return }
      let end = BootInstant(nanoseconds: entry.life.expiry(storedAt: entry.storedAt))
      let seconds = UInt32(clamping: max(0, (end - loop.now).components.seconds))
      filler.add(entry.answers(to: parts.name), route, seconds: seconds)
    }
  }
}

/// What a refill needs of an entry.
private struct CachedBody {
  let body: [UInt8]
  let storedAt: Int64
  let life: EntryLife
  let counts: (answers: UInt16, authorities: UInt16)

  init(_ record: CacheRecord) {
    (body, storedAt, life) = (Array(record.body), record.storedAt, record.life)
    counts = (record.answers, record.authorities)
  }

  func answers(to name: DomainName) -> [ResourceRecord] {
    Message.assembled(
      name, answers: counts.answers, authorities: counts.authorities, responseCode: .noError, body: body)?.answers ?? []
  }
}
