// Workload.swift -- entries as a household's resolver has them: addresses, aliases, denials.

import DNSWire
import MessageCache

/// Names, their responses and their keys. The keys fit every cache: each hashes them again.
final class Workload: @unchecked Sendable {
  let count: Int
  private let names: [DomainName]
  private let keys: UnsafeMutablePointer<UInt8>

  init(entries: Int) {
    count = entries
    let hosts = ["www", "api", "static-cdn", "img7", "e1234.dscb", "telemetry.eu-west-1", "m", "login"]
    let zones = ["example.com", "a-longer-name.example.net", "example.co.uk", "cloud.example.org"]
    names = (0..<entries).map {
      DomainName(text: "\(hosts[$0 % hosts.count]).s\($0 / 4).\(zones[$0 / 7 % zones.count])")!
    }
    keys = .allocate(capacity: entries * CacheKey.longest)
    for (number, name) in names.enumerated() {
      (keys + number * CacheKey.longest).update(from: name.octets, count: name.octets.count)
    }
  }

  deinit { keys.deallocate() }

  func emptyCache() -> MessageCache { MessageCache(CacheBounds(maxOctets: 128 << 20, maxEntries: 200_000)) }

  func filledCache(now: Int64) -> MessageCache {
    let cache = emptyCache()
    for number in 0..<count {
      var life = EntryLife(lifetime: UInt32(60 + number % 3_000))
      life.staleFor = 86_400
      life.source = 2
      cache.insert(key(number, in: cache), response(number), now: now &- Int64(number % 50) * 1_000_000_000, life)
    }
    return cache
  }

  @_noAllocation
  func key(_ number: Int, in cache: MessageCache) -> CacheKey {
    let octets = keys + number * 282
    var length = 0
    while octets[length] != 0 { length &+= Int(octets[length]) &+ 1 }
    return cache.key(
      in: octets, nameLength: length &+ 1,
      CacheScope(type: 1, dnssecOK: false, checkingDisabled: false, route: 0, network: 0))
  }

  /// Every tenth name does not exist, every third is an alias of an alias; one to four addresses.
  private func response(_ number: Int) -> ComposedResponse {
    let name = names[number]
    if number % 10 == 0 {
      let zone = DomainName(text: "example.com")!
      let text: [UInt8] = DomainName(text: "ns1.example.com")!.octets + DomainName(text: "admin.example.com")!.octets
      let start = ResourceRecord(owner: zone, type: .soa, ttl: 30, rdata: text + Array(repeating: 1, count: 20))
      return ComposedResponse(.nxDomain, to: name, answers: [], authorities: [start])!
    }
    var answers: [ResourceRecord] = []
    var owner = name
    if number % 3 == 0 {
      for alias in ["s\(number).edge.example.net", "e\(number % 977).cluster-\(number % 13).example.org"] {
        let target = DomainName(text: alias)!
        answers.append(ResourceRecord(owner: owner, type: .cname, ttl: 300, rdata: target.octets))
        owner = target
      }
    }
    for address in 0...(number % 4) {
      answers.append(
        ResourceRecord(owner: owner, type: .a, ttl: 60, rdata: [192, 0, UInt8(number % 256), UInt8(address)]))
    }
    return ComposedResponse(.noError, to: name, answers: answers)!
  }
}
