// AccessPolicy.swift -- which clients may query: a short list of prefixes, compared as integers on the hot path.

import CEvent
import CHotPath
import CSocket
import DNSWire
import FairShares
import Glibc

/// The prefixes of `listen.allow` or `encrypted.allow`. Immutable; shared by every thread.
package final class AccessPolicy: @unchecked Sendable {
  /// The prefixes that it was made from.
  package let allowed: Set<IPPrefix>
  private let place: Place

  /// What the prefixes are for, which the log says.
  package enum Place: Sendable {
    /// `listen.allow`.
    case listen
    /// `encrypted.allow`.
    case encrypted
  }
  private let prefixes: ClientPrefixes
  /// Refused queries that are not in the log yet: see `RefusedQueries`. Any thread may write; two that write at
  /// the same moment may count as one.
  private let refused: UnsafeMutablePointer<UInt64>

  /// Shortest time between two reports of refused queries, in nanoseconds.
  private static let silence: UInt64 = 60_000_000_000

  /// Allows every address in any of the prefixes.
  package init(_ allowed: [IPPrefix], for place: Place = .listen) {
    self.place = place
    self.allowed = Set(allowed)
    prefixes = ClientPrefixes(allowed)
    // A cache line of its own: threads that refuse many queries do not slow down threads that only read.
    let line = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 64)
    refused = line.bindMemory(to: UInt64.self, capacity: RefusedWord.count)
    refused.initialize(repeating: 0, count: RefusedWord.count)
  }

  deinit {
    prefixes.deallocate()
    refused.deallocate()
  }

  /// Whether the daemon answers queries from that address; an IPv4-mapped IPv6 address counts as the IPv4 one.
  @_noAllocation
  func allows(_ address: UnsafePointer<sockaddr_storage>) -> Bool {
    let client = IPNumber(address).unmapped
    if prefixes.firstIndex(containing: client) < prefixes.count { return true }
    noteRefused(client.isIPv6 ? RefusedWord.version6 | client.high >> 8 : RefusedWord.version4 | client.high >> 40)
    return false
  }

  @_noAllocation
  private func noteRefused(_ network: UInt64) {
    let first = hot_counter_read(refused + RefusedWord.network)
    if first == 0 { hot_counter_set(refused + RefusedWord.network, network) }
    hot_counter_add(refused + (first == 0 || first == network ? RefusedWord.fromIt : RefusedWord.fromOthers), 1)
  }

  /// Whether a report of refused queries is due: there are some, and the last report is at least a minute old.
  @_noAllocation
  func hasUnreported(now: Int64) -> Bool {
    guard hot_counter_read(refused + RefusedWord.fromIt) != 0 else { return false }
    return UInt64(bitPattern: now) >= hot_counter_read(refused + RefusedWord.nextReport)
  }

  /// Takes the refused queries since the last report; nil if no report is due. Resolver's loop only.
  package func takeRefused(now: Int64) -> RefusedQueries? {
    guard hasUnreported(now: now) else { return nil }
    let words = (0..<RefusedWord.nextReport).map { hot_counter_read(refused + $0) }
    // A thread that counted during the last report has left a count without its network.
    guard words[RefusedWord.network] != 0 else { return nil }
    for index in 0..<RefusedWord.nextReport { hot_counter_set(refused + index, 0) }
    hot_counter_set(refused + RefusedWord.nextReport, UInt64(bitPattern: now) + AccessPolicy.silence)
    return RefusedQueries(
      network: words[RefusedWord.network], words[RefusedWord.fromIt], words[RefusedWord.fromOthers], place)
  }
}

/// The layout of a policy's count of refused queries.
private enum RefusedWord {
  /// The network of the first refused query, or 0.
  static var network: Int { @_noAllocation get { 0 } }
  /// Queries from that network, and queries from all others.
  static var fromIt: Int { @_noAllocation get { 1 } }
  static var fromOthers: Int { @_noAllocation get { 2 } }
  /// Earliest time of the next report, in nanoseconds of the boot-time clock.
  static var nextReport: Int { @_noAllocation get { 3 } }
  static var count: Int { 4 }
  /// The top octet of a network, above 24 bits of an IPv4 address or 56 bits of an IPv6 address.
  static var version4: UInt64 { @_noAllocation get { 4 << 56 } }
  static var version6: UInt64 { @_noAllocation get { 6 << 56 } }
}

/// Queries of clients that are not in `listen.allow`, for the log.
package struct RefusedQueries {
  /// The network of the first refused query.
  let network: IPPrefix
  /// Queries from that network.
  let count: UInt64
  /// Queries from other networks.
  let others: UInt64
  private let place: AccessPolicy.Place

  fileprivate init?(network word: UInt64, _ count: UInt64, _ others: UInt64, _ place: AccessPolicy.Place) {
    self.place = place
    let octets = (0..<7).reversed().map { UInt8(truncatingIfNeeded: word >> (UInt64($0) * 8)) }
    let isIPv6 = word >> 56 == 6
    let address = isIPv6 ? octets + [UInt8](repeating: 0, count: 9) : octets[4...] + [0]
    guard let network = IPAddress(octets: Array(address)).flatMap({ IPPrefix($0, length: isIPv6 ? 56 : 24) }) else {
      return nil
    }
    (self.network, self.count, self.others) = (network, count, others)
  }

  /// One line for the log.
  package var text: String {
    let rest = others == 0 ? "" : " and \(others) from other networks"
    switch place {
    case .listen:
      return "refused \(count) \(count == 1 ? "query" : "queries") from \(network)\(rest): not in listen.allow"
    case .encrypted:
      return
        "refused \(count) \(count == 1 ? "connection" : "connections") from \(network)\(rest): not in encrypted.allow"
    }
  }
}

extension AccessPolicy {
  /// The networks that the machine's interfaces are currently on: the meaning of `"connected"`.
  package static func connectedNetworks() -> [IPPrefix] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var networks: [IPPrefix] = []
    var next = list
    while let entry = next {
      next = entry.pointee.ifa_next
      guard let address = octets(entry.pointee.ifa_addr), let mask = octets(entry.pointee.ifa_netmask) else { continue }
      let length = prefixLength(ofMask: mask)
      if let prefix = IPAddress(octets: address).flatMap({ IPPrefix($0, length: length) }) { networks.append(prefix) }
    }
    return networks
  }

  /// The length of a prefix whose addresses may ask. A network may give any mask: one of 0.0.0.0 would let everybody ask.
  static func prefixLength(ofMask mask: [UInt8]) -> Int {
    max(mask.reduce(0) { $0 + $1.nonzeroBitCount }, mask.count == 4 ? 8 : 32)
  }

  private static func octets(_ address: UnsafeMutablePointer<sockaddr>?) -> [UInt8]? {
    guard let address else { return nil }
    switch Int32(address.pointee.sa_family) {
    case AF_INET, AF_INET6: return IPNumber(address).octets
    default: return nil
    }
  }
}
