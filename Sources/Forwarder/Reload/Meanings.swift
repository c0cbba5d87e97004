// Meanings.swift -- what the numbers of providers and routes stand for, as text.
//
// The cache file contains fingerprints of these texts: if one changes, the next start drops the entries stored under
// it. So they are written field by field, and tests hold them word for word.

import Configuration
import DNSWire
import EventLoop
import MessageCache
import Persistence
import Resolver
import Upstreams

extension Configuration.Provider {
  /// What its number stands for in the cache: the source of its answers. Without secrets.
  var meaning: String { "\(name) \(service.meaning)" }
}

extension Configuration.Service {
  /// The kind and its own keys; of a secret, only whether there is one.
  fileprivate var meaning: String {
    switch self {
    case .alidns(let account, let isShort, let isScheduled):
      let user = account.map { "account=\($0.accountID) key=\($0.accessKeyID)" } ?? "unsigned"
      return "alidns \(user) short=\(isShort) schedule=\(isScheduled)"
    case .tencent(.https(_, let id)): return "tencent https id=\(id ?? "-")"
    case .tencent(.aes(let id, _)): return "tencent aes id=\(id)"
    case .tencent(.des(let id, _)): return "tencent des id=\(id)"
    case .emas(let account):
      let cipher = account.aesSecretKey == nil ? "none" : account.aesMode.rawValue
      return "emas \(account.api.rawValue) account=\(account.accountID) signed=\(account.secretKey != nil)"
        + " cipher=\(cipher) region=\(account.region.rawValue) schedule=\(account.isScheduled)"
    case .json: return "json"
    case .doh(let method): return "doh \(method.rawValue)"
    case .table(let table):
      let times = "interval=\(table.interval.nanoseconds)ns ttl=\(table.ttl.nanoseconds)ns"
      switch table.place {
      case .url(let url): return "table \(times) host=\(table.host ?? "-") url=\(url)"
      case .file(let path): return "table \(times) file=\(path)"
      }
    }
  }
}

extension Route {
  /// The servers that it asks, in order.
  ///
  /// - Parameter providers: the meanings of the providers' numbers.
  func meaning(_ providers: [String]) -> String {
    let asked = self.providers.map { "(\(providers[$0]))" }.joined(separator: " ")
    let local = localServers.entries.map { entry in
      switch entry {
      case .system: "system"
      case .address(let address): address.description
      }
    }
    let search = search.map { " search=\($0.rawValue)" } ?? ""
    return
      "providers=\(asked) localdns=(\(local.joined(separator: " "))) fallback=\(fallsBack) network=\(isNetwork)\(search)"
  }
}

extension TTLBounds {
  fileprivate var meaning: String {
    "ttl=\(lowest)-\(highest) negative=\(highestNegative) localdns=\(highestFallback)"
  }
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
    sources[EntrySource.nobody.number] = "nobody"
    self.init(
      routes: preparation.plan.routes.map { route in
        guard !route.isUnused else { return "nobody" }
        return "\(route.meaning(names)) \(route.ttl.meaning)\(route.filtersPrivate ? configuration.names.meaning : "")"
      }, sources: sources, terms: preparation.plan.routes.map { EntryTerms($0) })
  }
}
