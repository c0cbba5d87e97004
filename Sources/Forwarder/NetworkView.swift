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
  /// The search domains and the effect of each.
  package let searchDomains: [(name: String, meaning: String)]

  /// Reads the system's files.
  package init(_ configuration: Configuration) {
    let listeners = configuration.listen.addresses.map { SocketAddress($0) }
    let system = SystemResolvers.find(notAt: listeners)
    var servers: [String] = []
    for server in LocalServers(configuration.localDNS.servers).entries {
      switch server {
      case .system: servers += system.servers.map(\.description).filter { !servers.contains($0) }
      case .address(let address): if !servers.contains(address.description) { servers.append(address.description) }
      }
    }
    self.servers = servers
    searchDomains = SearchDomain.judged(system.searchDomains).map {
      ($0.name.text, NetworkView.meaning(of: $0, configuration))
    }
  }

  /// One line for the resolvers, and one for each search domain.
  package var lines: [String] {
    let servers = servers.isEmpty ? "none" : servers.joined(separator: ", ")
    return ["LocalDNS: \(servers)"] + searchDomains.map { "search domain \($0.name): \($0.meaning)" }
  }

  /// All search domains in one line; nil if there are none.
  static func line(about domains: [SearchDomain], _ configuration: Configuration) -> String? {
    guard !domains.isEmpty else { return nil }
    let parts = domains.map { "\($0.name.text) (\(meaning(of: $0, configuration)))" }
    return "search domains of the network: \(parts.joined(separator: ", "))"
  }

  private static func meaning(of domain: SearchDomain, _ configuration: Configuration) -> String {
    let order = configuration.localDNS.searchDomains
    switch domain.effect {
    case .publicSuffix: return "no effect: a public suffix"
    case .special: return "no effect: a special name"
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
