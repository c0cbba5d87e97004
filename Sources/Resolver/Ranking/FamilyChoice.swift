// FamilyChoice.swift -- withholds AAAA where IPv6 is measured to be worse than IPv4 (`ranking.families`).
//
// The cached answer is replaced by NODATA, which lives as long; the ranker keeps the addresses, measures them on, and puts
// them back when the verdict changes. No transfer is needed for that.

import DNSWire
import EventLoop
import MessageCache
import Ranking

extension Ranker {
  /// The longest TTL of the SOA record in the place of withheld addresses, in seconds: a client asks again soon.
  private static let longestTTL: UInt32 = 60

  /// Whether the families of a name are compared.
  var comparesFamilies: Bool { settings.familyThreshold != nil && measures }

  /// The hash of the key of a name's answer for the other address family; nil if there is no such entry.
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
    let wasWorse = entry.withheld != nil
    guard let ipv6 = hidden.all ?? response.addresses(of: name), isIPv6Worse(name, entry, ipv6, wasWorse: wasWorse),
      let nodata = response.withoutAddresses(of: name, longestTTL: Ranker.longestTTL)
    else { return }
    hidden = HiddenAddresses(all: ipv6, withheld: response)
    response = nodata
  }

  /// A round of one of a name's answers has ended: its AAAA answer is withheld or given from now on.
  func chooseFamily(after hash: UInt64, of name: DomainName) {
    guard comparesFamilies, let ended = entries[hash], let ipv6 = ended.isIPv6 ? hash : ended.partner,
      let entry = entries[ipv6], let run = run(of: ipv6, isIPv6: true)
    else { return }
    let isWorse = isIPv6Worse(name, entry, run.addresses, wasWorse: entry.withheld != nil)
    if !isWorse {
      give(ipv6)
      rearrange(ipv6, name, isIPv6: true)
    } else if entry.withheld == nil {
      withhold(ipv6, name, run)
    }
  }

  /// Gives every withheld answer again: what was known does not count any more.
  func giveAll() {
    for (hash, entry) in entries where entry.withheld != nil { give(hash) }
  }

  private func isIPv6Worse(_ name: DomainName, _ entry: Entry, _ ipv6: [[UInt8]], wasWorse: Bool) -> Bool {
    guard let threshold = settings.familyThreshold, let partner = entry.partner,
      let ipv4 = run(of: partner, isIPv6: false)?.addresses
    else { return false }
    let kinds = kinds(for: name)
    func known(_ addresses: [[UInt8]]) -> [[Measurement?]] {
      addresses.prefix(Ranker.mostAddresses).compactMap { IPAddress(octets: $0) }.map { address in
        kinds.map { isUsable($0, address) ? self.known(address, $0) : nil }
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
    entries[hash]?.withheld = response
    entries[hash]?.all = run.addresses
    counters.rearranged += 1
  }

  private func give(_ hash: UInt64) {
    guard let response = entries[hash]?.withheld else { return }
    entries[hash]?.withheld = nil
    // The entry may be gone, or be a newer one with addresses.
    if let copy = cache.copy(hash: hash), copy.extendedError == .filtered, cache.replace(copy, with: response) {
      counters.rearranged += 1
    }
    let shown = cache.addressRun(octets: 16, hash: hash)?.addresses.count
    if shown == entries[hash]?.all?.count { entries[hash]?.all = nil }
  }
}

extension ComposedResponse {
  /// The AAAA records of the answer; nil if there is none.
  fileprivate func addresses(of name: DomainName) -> [[UInt8]]? {
    let found = message(to: Question(name: name, type: .aaaa))?.answers.filter { $0.type == .aaaa }.map(\.rdata)
    return found?.isEmpty ?? true ? nil : found
  }

  /// NODATA in the place of the addresses (RFC 2308 section 2.2), filtered (RFC 8914 section 4.18).
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
