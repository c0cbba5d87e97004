// CacheFingerprints.swift -- what the numbers of providers and routes stand for, as text.
//
// The cache file contains fingerprints of these texts: if one changes, the next start drops the entries stored under
// it. So they are written field by field, and tests hold them word for word.

import Configuration
import DNSWire
import LocalDNS
import MessageCache
import Persistence
import Refresh
import Resolver
import Upstreams

extension Configuration.Provider {
  /// What its number stands for in the cache: the source of its answers. Without secrets.
  var meaning: String { "\(name) \(kind.meaning)" }
}

extension Route {
  /// The servers that it asks, in order.
  ///
  /// - Parameter providers: the meanings of the providers' numbers.
  func meaning(_ providers: [String]) -> String {
    let asked = self.providers.map { "(\(providers[$0]))" }.joined(separator: " ")
    let local = localServers.map { server in
      switch server {
      case .system: "system"
      case .resolver(let resolver): PlainResolver(resolver).description
      }
    }
    let search = search == .ignore ? "" : " search=\(search.rawValue)"
    let hosts = hostsNamesOf == nil ? "" : " names=hosts"
    return
      "providers=\(asked) localdns=(\(local.joined(separator: " "))) fallback=\(fallsBack) network=\(isNetwork)\(search)\(hosts)"
  }
}

extension TTLBounds {
  fileprivate var meaning: String { "ttl=\(lowest)-\(highest) negative=\(highestNegative) localdns=\(highestFallback)" }
}

extension Configuration.Names {
  /// The private addresses that filtered answers may not contain, and the names exempt from that; empty if it is off.
  fileprivate var meaning: String {
    guard rebindProtection else { return "" }
    let prefixes = rebindPrefixes.isEmpty ? "" : " prefixes=(\(rebindPrefixes.map { "\($0)" }.joined(separator: " ")))"
    return " private=(\(rebindAllow.map { "\($0)" }.joined(separator: " ")))\(prefixes)"
  }
}

extension CacheMeanings {
  /// The meanings of the routes and of the entries' sources in a configuration.
  init(_ preparation: Preparation) {
    let configuration = preparation.configuration
    let names = configuration.providers.map(\.meaning)
    var sources = [EntrySource.localDNS.number: "localdns"]
    for (number, name) in zip(preparation.providerNumbers, names) {
      sources[EntrySource.provider(number).number] = name
    }
    sources[EntrySource.unknown.number] = "nobody"
    self.init(
      routes: preparation.plan.routes.map { route in
        guard !route.isUnused else { return "nobody" }
        return "\(route.meaning(names)) \(route.ttl.meaning)\(route.filtersPrivate ? configuration.names.meaning : "")"
      }, sources: sources, terms: preparation.plan.routes.map { EntryTerms($0) })
  }
}
