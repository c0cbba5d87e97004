// NetworkView.swift -- what the network provides, and what that changes, in human-readable lines.

import Configuration
import DNSWire
import EventLoop
import LocalDNS
import Routing
import Upstreams

/// What the current network changes about a configuration.
package struct NetworkView: Sendable {
  /// The resolvers that LocalDNS currently uses.
  package let servers: [String]
  /// What LocalDNS does with resolvers that are not used, or may not be.
  package let remarks: [String]
  /// The search domains and the effect of each.
  package let searchDomains: [(name: String, meaning: String)]

  /// Reads the system's files.
  package init(_ configuration: Configuration) {
    let listeners = configuration.listen.addresses.map { SocketAddress($0) }
    let system = SystemResolvers(notAt: listeners)
    let localDNS = configuration.localDNS.servers
    let servers = localDNS.addresses(system: system.servers)
    let all = configuration.rules.reduce(servers) { found, rule in
      found + rule.servers.addresses(system: []).filter { !found.contains($0) }
    }
    let ownership = Dictionary(uniqueKeysWithValues: all.map { ($0, SystemResolvers.ownership(of: $0, listeners)) })
    self.servers = servers.filter { ownership[$0] != .ours }.map(\.description)
    let omitted = localDNS.contains(.system) ? system.omitted : []
    remarks =
      omitted.map { "leaves out \($0.server): \($0.reason)" }
      + all.compactMap { server in
        switch ownership[server] {
        case .ours: "leaves out \(server): httpdnsd itself"
        case .doubtful: "uses \(server) unless a probe shows that it is httpdnsd itself"
        case .others, nil: nil
        }
      }
    searchDomains = SearchDomain.judged(system.searchDomains).map {
      ($0.name.text, NetworkView.meaning(of: $0, configuration))
    }
  }

  /// One line for the resolvers, one for each remark, and one for each search domain.
  package var lines: [String] {
    let servers = servers.isEmpty ? "none" : servers.joined(separator: ", ")
    return ["LocalDNS: \(servers)"] + remarks.map { "LocalDNS \($0)" }
      + searchDomains.map { "search domain \($0.name): \($0.meaning)" }
  }

  /// All search domains in one line; nil if there are none.
  static func line(about domains: [SearchDomain], _ configuration: Configuration) -> String? {
    guard !domains.isEmpty else { return nil }
    let parts = domains.map { "\($0.name.text) (\(meaning(of: $0, configuration)))" }
    return "search domains of the network: \(parts.joined(separator: ", "))"
  }

  private static func meaning(of domain: SearchDomain, _ configuration: Configuration) -> String {
    let order = configuration.localDNS.searchDomains
    let isRouters =
      configuration.localDNS.portalNames && !configuration.localDNS.servers.isEmpty && RouterNames.contains(domain.name)
    switch domain.effect {
    case .publicSuffix: return "no effect: a public suffix"
    case .special: return "no effect: a special name"
    case .shared where isRouters: return "its names go to LocalDNS first, then to the providers: a router's own page"
    case _ where order == .ignore: return "no effect: localdns.search_domains = \"ignore\""
    case _ where configuration.localDNS.servers.isEmpty: return "no effect: no LocalDNS"
    case _ where !configuration.names.special: return "no effect: names.special = false"
    case .networkOnly: return "its names go to LocalDNS alone"
    case .shared where configuration.providers.isEmpty: return "no effect: no provider"
    case .shared where order == .first: return "its names go to LocalDNS first, then to the providers"
    case .shared: return "its names go to the providers first, then to LocalDNS"
    }
  }
}
