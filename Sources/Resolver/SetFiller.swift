// SetFiller.swift -- the addresses of answers into the firewall sets of their routes, before a client gets the answer.
//
// An address stays in a set for as long as the cache may hand it out, and `set_keep` longer. So hits need nothing.

import Configuration
import DNSWire
import EventLoop
import FirewallSets
import HTTPDNS
import MessageCache
import Routing

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

  package init(_ writer: SetWriter) { self.writer = writer }

  /// Adds an answer's addresses.
  ///
  /// - Parameters:
  ///   - answer: nil for none.
  ///   - completion: called when they are in the sets, or cannot be; after 50 ms at the latest.
  func add(_ answer: FinishedAnswer?, to asked: ResolverQuestion, completion: @escaping () -> Void = {}) {
    guard let sets = asked.route.sets, let answer,
      let records = answer.response.message(to: Question(name: asked.question.name, type: asked.question.type))?.answers
    else { return completion() }
    let seconds = max(answer.lifetime, records.map(\.ttl).max() ?? 0)
    let addresses = SetFiller.addresses(of: records, asked.route, seconds: seconds)
    guard !addresses.isEmpty else { return completion() }
    writer.add(addresses, to: sets.names, includingPrivate: sets.includesPrivate, completion: completion)
  }

  /// Ends the thread and all waiting.
  func close() { writer.close() }

  /// Adds addresses to those of these sets that the route has, and returns when the kernel has replied.
  nonisolated(nonsending) func add(_ addresses: [SetAddress], _ route: Route, to wanted: Set<FirewallSetName>) async {
    guard let sets = route.sets else { return }
    await writer.add(
      addresses, to: sets.names.filter(wanted.contains), includingPrivate: sets.includesPrivate)
  }

  /// The addresses of records that are valid for that many seconds, with the time for which they have to be in sets.
  static func addresses(of records: [ResourceRecord], _ route: Route, seconds: UInt32) -> [SetAddress] {
    var lifetime = Duration.seconds(Int64(seconds)) + (route.sets?.keep ?? .zero)
    if route.stale.mode == .immediate { lifetime += .seconds(Int64(route.stale.maxAge)) }
    // It never expires while the daemon runs; the writer has a limit of its own.
    if route.stale.isImmutable { lifetime = .seconds(Int64(UInt32.max)) }
    return records.flatMap(\.addresses).map { SetAddress($0, lifetime: lifetime) }
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
  /// How many addresses a refill adds at once; answers of clients come in between.
  private static let refillPortion = 128

  /// Adds the addresses of all cached answers to these sets, for names whose rules still lead there.
  ///
  /// - Complexity: O(n) in the number of cache entries.
  package func refill(_ sets: Set<FirewallSetName>, by filler: SetFiller) async {
    let routes = configuration.settings.routes.filter { !sets.isDisjoint(with: $0.sets?.names ?? []) }
    let byNumber = Dictionary(uniqueKeysWithValues: routes.map { ($0.number, $0) })
    var survey = CacheSurvey(of: cache)
    while !byNumber.isEmpty, !survey.isDone {
      var found: [(key: [UInt8], entry: CachedBody)] = []
      await loop.inPortions {
        survey.advance { record, _ in
          guard let number = record.route, byNumber[number] != nil, record.answers > 0 else { return }
          found.append((Array(record.key), CachedBody(record)))
        }
        return survey.isDone || found.count >= ResolverConsole.refillPortion
      }
      var addresses: [UInt16: [SetAddress]] = [:]
      for (key, entry) in found {
        guard let parts = KeyParts(key), let route = byNumber[parts.scope.route], isRouted(parts) else { continue }
        let end = BootInstant(nanoseconds: entry.life.expiry(storedAt: entry.storedAt))
        let seconds = UInt32(clamping: max(0, (end - loop.now).components.seconds))
        addresses[route.number, default: []] += SetFiller.addresses(
          of: entry.answers(to: parts.name), route, seconds: seconds)
      }
      for (number, addresses) in addresses {
        for start in stride(from: 0, to: addresses.count, by: ResolverConsole.refillPortion) {
          let portion = addresses[start..<min(start + ResolverConsole.refillPortion, addresses.count)]
          await filler.add(Array(portion), byNumber[number]!, to: sets)
        }
      }
    }
  }

  /// Whether the rules lead some client with the name of an entry to the entry's route.
  private func isRouted(_ parts: KeyParts) -> Bool {
    guard let table else { return true }
    return parts.name.octets.withUnsafeBufferPointer { name in
      (0..<table.classes.count).contains { group in
        let found = table.find(name.baseAddress!, length: name.count, type: parts.scope.type, from: group)
        return found.decision == .route(parts.scope.route)
      }
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
