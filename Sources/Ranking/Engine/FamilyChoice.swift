// FamilyChoice.swift -- withholds AAAA records if IPv6 is measured to be worse than IPv4 (`ranking.families`).
//
// NODATA replaces the cached answer and expires when the answer would. The ranker retains the addresses,
// continues to measure them, and restores the answer without a transfer when IPv6 is no longer worse.

import DNSWire
import EventLoop
import MessageCache

extension Ranker {
  /// The maximum TTL of the SOA record in place of withheld addresses, in seconds, so that a client asks again soon.
  private static let longestTTL: UInt32 = 60

  /// Whether the families of a name are compared.
  package var comparesFamilies: Bool { settings.comparesFamilies }

  /// The hash of the key for the same name and the other address family, cached or not; nil if `hash` is not cached.
  func otherFamily(of hash: UInt64) -> UInt64? {
    guard let parts = cache.key(hash: hash).flatMap({ KeyParts($0) }) else { return nil }
    var scope = parts.scope
    scope.type = (scope.type == RecordType.a.rawValue ? RecordType.aaaa : .a).rawValue
    let name = parts.name.octets
    return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: CacheKey.longest) { buffer in
      guard let start = buffer.baseAddress else { return nil }
      _ = buffer.update(fromContentsOf: name)
      return cache.key(in: start, nameLength: name.count, scope, subnet: parts.subnet).hash
    }
  }

  /// Withholds the addresses of a new answer if IPv6 is worse.
  func withholdIfWorse(
    _ response: inout ComposedResponse, to name: DomainName, hash: UInt64, isPlain: Bool,
    _ hidden: inout HiddenAddresses
  ) {
    guard isPlain, comparesFamilies, let entry = entries[hash], entry.isIPv6 else { return }
    let wasWorse = entry.hidden.withheld != nil
    guard let ipv6 = hidden.all ?? response.addresses(of: name), isIPv6Worse(name, entry, ipv6, wasWorse: wasWorse),
      let nodata = response.withoutAddresses(of: name, longestTTL: Ranker.longestTTL)
    else { return }
    hidden = HiddenAddresses(all: ipv6, withheld: response)
    response = nodata
  }

  /// Withholds or restores the AAAA answer of a name, after a round of the name's A or AAAA answer.
  func chooseFamily(after hash: UInt64, of name: DomainName) {
    guard comparesFamilies, let ended = entries[hash], let ipv6 = ended.isIPv6 ? hash : ended.partner,
      let entry = entries[ipv6], let run = run(of: ipv6, isIPv6: true)
    else { return }
    let isWorse = isIPv6Worse(name, entry, run.addresses, wasWorse: entry.hidden.withheld != nil)
    if !isWorse {
      restore(ipv6)
      rearrange(ipv6, name, isIPv6: true)
    } else if entry.hidden.withheld == nil {
      withhold(ipv6, name, run)
    }
  }

  /// Restores every withheld answer. Call it when the measurements do not apply any more.
  func restoreAll() {
    for (hash, entry) in entries where entry.hidden.withheld != nil { restore(hash) }
  }

  private func isIPv6Worse(_ name: DomainName, _ entry: Entry, _ ipv6: [[UInt8]], wasWorse: Bool) -> Bool {
    guard let threshold = settings.familyThreshold, let partner = entry.partner,
      let ipv4 = run(of: partner, isIPv6: false)?.addresses
    else { return false }
    let kinds = kinds(for: name)
    func known(_ addresses: [[UInt8]]) -> [[Measurement?]] {
      addresses.prefix(Ranker.mostAddresses).compactMap { IPAddress(octets: $0) }.map { address in
        kinds.map { rounds.isUsable($0, address) ? rounds.known(address, $0) : nil }
      }
    }
    return FamilyComparison(threshold: UInt32(clamping: threshold.nanoseconds / 1_000)).isIPv6Worse(
      ipv4: known(ipv4), ipv6: known(ipv6), wasWorse: wasWorse)
  }

  private func withhold(_ hash: UInt64, _ name: DomainName, _ run: AddressRun) {
    guard let copy = cache.copy(hash: hash), let parts = KeyParts(copy.key), !parts.scope.dnssecOK,
      !copy.isAuthenticated, let shown = cache.addressRun(octets: 16, hash: hash)?.addresses,
      let response = copy.response(to: name, showing: shown),
      let nodata = response.withoutAddresses(of: name, longestTTL: Ranker.longestTTL),
      cache.replace(copy, with: nodata)
    else { return }
    entries[hash]?.hidden.withheld = response
    entries[hash]?.all = run.addresses
    rounds.counters.rearranged += 1
  }

  private func restore(_ hash: UInt64) {
    guard let response = entries[hash]?.hidden.withheld else { return }
    entries[hash]?.hidden.withheld = nil
    // Only NODATA is replaced: the entry may have been evicted, or a newer answer may have addresses.
    if let copy = cache.copy(hash: hash), copy.extendedError == .filtered, cache.replace(copy, with: response) {
      rounds.counters.rearranged += 1
    }
    let shown = cache.addressRun(octets: 16, hash: hash)?.addresses.count
    if shown == entries[hash]?.all?.count { entries[hash]?.all = nil }
  }
}

extension ComposedResponse {
  /// The RDATA of the AAAA records; nil if the answer has no such record.
  fileprivate func addresses(of name: DomainName) -> [[UInt8]]? {
    let found = message(to: Question(name: name, type: .aaaa))?.answers.filter { $0.type == .aaaa }.map(\.rdata)
    return found?.isEmpty ?? true ? nil : found
  }

  /// NODATA in place of the addresses (RFC 2308 section 2.2), with the EDE Filtered (RFC 8914 section 4.18).
  fileprivate func withoutAddresses(of name: DomainName, longestTTL: UInt32) -> ComposedResponse? {
    guard let message = message(to: Question(name: name, type: .aaaa)) else { return nil }
    let aliases = message.answers.filter { $0.type == .cname }
    let ttl = message.answers.map(\.ttl).min() ?? longestTTL
    let soa = SyntheticSOA.record(ResourceRecord.target(of: aliases) ?? name, ttl: min(ttl, longestTTL))
    var response = ComposedResponse(.noError, to: name, answers: aliases, authorities: [soa])
    response?.extendedError = .filtered
    response?.isForEverySubnet = isForEverySubnet
    return response
  }
}
