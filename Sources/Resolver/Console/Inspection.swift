// Inspection.swift -- looks up what is cached about a name, and demotes an address that an operator reports as bad.

import DNSWire
import EventLoop
import Frontend
import MessageCache
import Ranking
import Refresh
import Upstreams

extension ResolverConsole {
  /// The maximum number of entries in a report: with client subnets, a name can have thousands.
  private static let mostEntries = 256

  /// Copies of the selected entries, in no particular order, and the number of further ones.
  ///
  /// - Complexity: O(n) in the number of cache entries, in steps.
  func entries(of names: NameSelection) async -> (entries: [(copy: EntryCopy, parts: KeyParts)], more: Int) {
    var found: [(EntryCopy, KeyParts)] = []
    var more = 0
    var survey = CacheSurvey(of: cache)
    await loop.inPortions {
      survey.advance { record, hash in
        guard names.contains(record) else { return }
        guard found.count < ResolverConsole.mostEntries else { return more += 1 }
        let copy = EntryCopy(record, hash: hash)
        if let parts = KeyParts(copy.key) { found.append((copy, parts)) }
      }
      return survey.isDone
    }
    return (found, more)
  }

  /// What is cached about a name: answers of every type, on every route and network, for every subnet, and NXDOMAIN of
  /// names above that covers it.
  package func content(of name: DomainName) async -> NameContent {
    let selection = NameSelection([name], andBelow: false)
    let (found, more) = await entries(of: selection)
    let now = loop.now
    let plans = refresher?.plans(Set(found.map(\.copy.hash))) ?? [:]
    var content = NameContent(more: more)
    content.entries = found.compactMap { report($0, $1, plans) }
    content.entries.sort { $0.question.isBefore($1.question) }
    content.failures = memory.waiting(selection, now: now).compactMap { failure in
      let upstream = failure.upstream == FailureCache.localDNS ? "localdns" : upstreams[failure.upstream].name
      return KeyParts(failure.key).map {
        FailureReport(
          question: EntryQuestion($0), waits: failure.until - now, reason: "\(upstream): \(failure.reason.reason)")
      }
    }
    content.failures.sort { $0.question.isBefore($1.question) }
    return content
  }

  /// The report of an entry; nil if it is no longer usable, or malformed.
  func report(_ copy: EntryCopy, _ parts: KeyParts, _ plans: [UInt64: RefreshPlan]) -> EntryReport? {
    let now = loop.now.nanoseconds
    guard now < copy.usefulUntil, var report = EntryReport(copy, parts, now: now) else { return nil }
    report.question.isHere = isHere(parts) && copy.life.network.map { $0 == network.number } ?? true
    report.upstreams = upstreamNames(parts.scope.route)
    report.source = name(of: EntrySource(number: copy.life.source))
    report.refresh = plans[copy.hash] ?? .none
    // Also of those that the answer does not show (`ranking.answers`, `ranking.families`).
    if let run = ranker?.run(of: copy.hash, isIPv6: parts.scope.type == RecordType.aaaa.rawValue) {
      report.addresses = ranker?.figures(of: run.addresses.compactMap { IPAddress(octets: $0) }, of: parts.name) ?? []
    }
    return report
  }

  /// Moves an address to the end of each cached answer for a name, until that is over (`ranking.bad_for`).
  package func reportBad(_ address: IPAddress, of name: DomainName) async -> BadAddressOutcome {
    guard let ranker, ranker.takesReports else { return BadAddressOutcome(isOff: true) }
    let found = await entries(of: NameSelection([name], andBelow: false)).entries
    let report = AddressReport(name: name, address: address, result: .bad)
    return ranker.take(report, answers: found.filter { $0.parts.name == name }.map(\.copy.hash)) ?? BadAddressOutcome()
  }

  /// Whether an entry is valid on the network that the machine is on.
  func isHere(_ parts: KeyParts) -> Bool {
    guard let route = configuration.route(parts.scope.route) else { return false }
    return parts.scope.network == (route.belongsToNetwork ? network.number : 0)
  }

  private func upstreamNames(_ number: UInt16) -> [String] {
    guard let route = configuration.route(number) else { return [] }
    let usesLocal = route.fallsBack && !route.localServers.isEmpty
    return route.providers.map { upstreams[$0].name } + (usesLocal ? ["localdns"] : [])
  }

  private func name(of source: EntrySource) -> String {
    switch source {
    case .unknown: "httpdnsd"
    case .localDNS: "localdns"
    case .provider(let number): configuration.place(ofProvider: number).map { upstreams[$0].name } ?? "unknown"
    }
  }
}

extension EntryQuestion {
  /// Whether it comes first in order of name length, type, route, network, DO, CD and subnet.
  fileprivate func isBefore(_ other: EntryQuestion) -> Bool {
    func order(_ question: EntryQuestion) -> [UInt32] {
      [
        UInt32(question.name.octets.count), UInt32(question.type.rawValue), UInt32(question.route), question.network,
        question.dnssecOK ? 1 : 0, question.checkingDisabled ? 1 : 0,
      ]
    }
    let (mine, others) = (order(self), order(other))
    guard mine == others else { return mine.lexicographicallyPrecedes(others) }
    return "\(subnet.map { "\($0)" } ?? "")" < "\(other.subnet.map { "\($0)" } ?? "")"
  }
}
