// RouteExplanation.swift -- explains, in one line, the route of a question and the servers it goes to.

import Configuration
import DNSWire
import Refresh
import Resolver
import Routing
import Upstreams

extension Forwarder {
  /// Explains a question's route and its servers: `search domain corp.example.: alidns, then LocalDNS …`. Reads the
  /// hosts file.
  ///
  /// - Parameter client: who asks; nil for the daemon itself.
  package func way(of question: Question, from client: IPAddress? = nil) -> String {
    let (name, type) = (question.name.lowercased, question.type)
    let decision = decision(name, type, from: client)
    let hosts = hosts
    func reason(_ rules: [RouteRule]) -> RouteReason {
      RouteReason(
        name, type, from: client, rules: rules, settings: preparation.plan.settings, hosts: hosts)
    }
    let (reason, rest) = (reason(preparation.plan.rules), reason([]))
    if case .rule(let index, _) = reason, case .standard = preparation.plan.rules[index].action {
      return "\(text(reason)), default: \(text(rest)): \(text(decision))"
    }
    return "\(text(reason)): \(text(decision))"
  }

  private var hosts: HostsFile {
    configuration.names.hostsFile.flatMap { try? HostsFile(path: $0) } ?? HostsFile()
  }

  private func text(_ reason: RouteReason) -> String {
    switch reason {
    case .rule(let index, let pattern):
      // The first rules are the daemon's own: for names by which it detects loops, and by which it is recognised.
      let own = preparation.plan.rules.count - configuration.rules.count
      if index < own { return "httpdnsd's own name (\(pattern))" }
      let name = configuration.rules[index - own].name.map { " \"\($0)\"" } ?? ""
      return "rule \(index - own + 1)\(name) (\(pattern))"
    case .list(let index, _): return text(.rule(index, .subtree(.root)))
    case .hosts: return "hosts file \(configuration.names.hostsFile ?? "")"
    case .special(let zone): return "special name \(zone)"
    case .portal: return "captive portal's probe"
    case .router: return "router's own page"
    case .search(let domain): return "search domain \(domain) of the network"
    case .singleLabel: return "name of one label"
    case .literal: return "address instead of a name"
    case .standard: return "no rule"
    }
  }

  private func text(_ decision: RouteDecision) -> String {
    guard case .route(let number) = decision else { return "answered by httpdnsd itself" }
    let route = preparation.plan.routes[Int(number)]
    let names = route.providers.map { configuration.providers[$0].name }.joined(separator: ", ")
    let hasLocalDNS = !route.localServers.entries.isEmpty
    guard !route.providers.isEmpty else { return hasLocalDNS ? "LocalDNS" : "no upstream" }
    guard hasLocalDNS else { return names }
    let fallback = route.fallsBack ? "; LocalDNS when \(route.providers.count == 1 ? "it fails" : "they fail")" : ""
    return switch route.search {
    case .afterNXDOMAIN: "\(names); LocalDNS for names that do not exist there\(fallback)"
    case .first: "LocalDNS; \(names) for names that do not exist there"
    case .ignore: "\(names)\(fallback)"
    }
  }
}
