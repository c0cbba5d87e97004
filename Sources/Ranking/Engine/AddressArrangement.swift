// AddressArrangement.swift -- orders the addresses of answers by the ranker's measurements and reports.

import Configuration
import DNSWire
import EventLoop
import MessageCache

/// The addresses that a cached answer omits.
package struct HiddenAddresses {
  /// All addresses of the answer, if the cache holds only the best of them (`ranking.answers`) or none of them
  /// (`ranking.families`); nil if the cache holds all.
  package var all: [[UInt8]]?
  /// The answer with its addresses, while NODATA is cached in its place (`ranking.families`).
  var withheld: ComposedResponse?
}

extension Ranker {
  /// Orders the addresses of a new answer, and shortens or withholds it if the settings require that. Call it before
  /// the answer is stored.
  ///
  /// - Parameters:
  ///   - hash: the hash of the key under which the answer will be stored.
  ///   - isPlain: whether the answer has neither DNSSEC data nor AD. Other answers are ordered, but never shortened or
  ///     withheld.
  /// - Returns: the addresses that the answer now omits; pass them to `stored`.
  package func arrange(
    _ response: inout ComposedResponse, to name: DomainName, hash: UInt64, isPlain: Bool
  ) -> HiddenAddresses {
    var hidden = HiddenAddresses(all: putInOrder(&response, to: name, hash: hash, isPlain: isPlain))
    withholdIfWorse(&response, to: name, hash: hash, isPlain: isPlain, &hidden)
    return hidden
  }

  /// - Returns: all addresses if `response` now has only the best of them; otherwise nil.
  private func putInOrder(
    _ response: inout ComposedResponse, to name: DomainName, hash: UInt64, isPlain: Bool
  ) -> [[UInt8]]? {
    guard rounds.table.count > 0 || reports.count > 0, response.rotation.count > 1 else { return nil }
    let addresses = response.rotatingAddresses
    let band = band(of: hash, cache.addressRun(octets: addresses[0].count, hash: hash))
    let order = order(of: addresses, name, band: band)
    response.arrange(order.indices, rotating: order.bandCount)
    guard let best = shortened(order, of: addresses, name, isPlain: isPlain),
      entries[hash] != nil || entries.count < Ranker.mostEntries, let fewer = response.showing(best, of: name)
    else { return nil }
    response = fewer
    response.limitRotation(to: order.bandCount)
    return addresses
  }

  /// The best addresses, as many as `ranking.answers` allows; nil if the answer stays complete.
  private func shortened(
    _ order: AddressOrder, of addresses: [[UInt8]], _ name: DomainName, isPlain: Bool
  ) -> [[UInt8]]? {
    guard settings.section.answers > 0, addresses.count > settings.section.answers, order.hasWorking, isPlain,
      !kinds(for: name).isEmpty
    else { return nil }
    return order.indices.prefix(settings.section.answers).map { addresses[$0] }
  }

  /// The addresses that take turns at the front of a measured answer; empty before its first measurement.
  func band(of hash: UInt64, _ run: @autoclosure () -> AddressRun?) -> Set<[UInt8]> {
    guard entries[hash]?.measuredAt != nil, let run = run() else { return [] }
    return Set(run.addresses.prefix(run.rotating ?? 0))
  }

  func order(of addresses: [[UInt8]], _ name: DomainName, band: Set<[UInt8]>) -> AddressOrder {
    let kinds = kinds(for: name)
    let now = loop.now.nanoseconds
    return AddressOrder(
      addresses.map { octets in
        guard let address = IPAddress(octets: octets) else { return AddressStanding(condition: .unknown) }
        return AddressStanding(
          condition: condition(address, kinds), isReported: reports.isBad(address, of: name, now: now),
          wasInBand: band.contains(octets))
      })
  }

  private func condition(_ address: IPAddress, _ kinds: [ProbeKind]) -> AddressStanding.Condition {
    var hasFailed = false
    for (rank, kind) in kinds.enumerated() where rounds.isUsable(kind, address) {
      guard let known = rounds.known(address, kind) else { return .unknown }
      if !known.isFailing, let time = known.microseconds { return .works(rank: rank, microseconds: time) }
      hasFailed = true
    }
    return hasFailed ? .failing : .unknown
  }

  /// Orders the addresses of a cached answer by the current measurements and reports.
  ///
  /// - Returns: whether the cached answer changed.
  @discardableResult
  func rearrange(_ hash: UInt64, _ name: DomainName, isIPv6: Bool) -> Bool {
    guard let run = run(of: hash, isIPv6: isIPv6), run.addresses.count > 1 else { return false }
    let order = order(of: run.addresses, name, band: band(of: hash, run))
    let isChanged =
      resize(hash, name, order, run)
      ?? cache.arrange(order.indices.map { run.addresses[$0] }, rotating: order.bandCount, hash: hash)
    if isChanged { rounds.counters.rearranged += 1 }
    return isChanged
  }

  /// Replaces a cached answer if `ranking.answers` requires a different set of addresses.
  ///
  /// - Returns: whether it was replaced; nil if its set of addresses stays the same, so that only the order may change.
  private func resize(_ hash: UInt64, _ name: DomainName, _ order: AddressOrder, _ run: AddressRun) -> Bool? {
    let isShortened = entries[hash]?.all != nil
    guard settings.section.answers > 0 || isShortened, entries[hash] != nil, let copy = cache.copy(hash: hash),
      let parts = KeyParts(copy.key), let shown = cache.addressRun(octets: run.addresses[0].count, hash: hash)
    else { return nil }
    let isPlain = !parts.scope.dnssecOK && !copy.isAuthenticated
    let best = shortened(order, of: run.addresses, name, isPlain: isPlain)
    let wanted = best ?? order.indices.map { run.addresses[$0] }
    entries[hash]?.all = best == nil ? nil : run.addresses
    guard Set(wanted) != Set(shown.addresses) else { return nil }
    guard var response = copy.response(to: name, showing: wanted) else { return false }
    response.limitRotation(to: order.bandCount)
    return cache.replace(copy, with: response)
  }

  /// Puts all addresses back into every shortened answer.
  func showAll() {
    for (hash, entry) in entries {
      guard let all = entry.all else { continue }
      entries[hash]?.all = nil
      guard let copy = cache.copy(hash: hash), let name = KeyParts(copy.key)?.name,
        let response = copy.response(to: name, showing: all)
      else { continue }
      cache.replace(copy, with: response)
    }
  }
}
