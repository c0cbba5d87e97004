// RouteExplanation.swift -- explains, in one line, the route of a question and the servers it goes to.

import Configuration
import DNSWire
import ListStore
import Lists
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
        name, type, from: client, rules: rules, settings: preparation.plan.settings, hosts: hosts
      ) { find(name, in: $0.list, blocks: $0.blocks).map { !$0.isException } ?? false }
    }
    let (reason, rest) = (reason(preparation.plan.rules), reason([]))
    let rule: Int? =
      switch reason {
      case .rule(let index, _), .list(let index, _): index
      default: nil
      }
    if let rule, case .standard = preparation.plan.rules[rule].action {
      return "\(text(reason, name)), default: \(text(rest, name)): \(text(decision))"
    }
    return "\(text(reason, name)): \(text(decision))"
  }

  private var hosts: HostsFile {
    configuration.names.hostsFile.flatMap { try? HostsFile(path: $0) } ?? HostsFile()
  }

  /// The line of a list that decides about a name. Reads all of the text.
  private func find(_ name: DomainName, in list: Int, blocks: Bool) -> ListFinding? {
    let lists = preparation.plan.lists
    return try? lists.texts[lists.sources[list].place]?.find(name, blocks: blocks)
  }

  /// The first rules are the daemon's own: for names by which it detects loops, and by which it is recognised.
  private func ruleName(_ index: Int) -> String {
    let own = preparation.plan.rules.count - configuration.rules.count
    return index < own ? "httpdnsd's own name" : configuration.ruleName(index - own)
  }

  private func text(_ reason: RouteReason, _ name: DomainName) -> String {
    switch reason {
    case .rule(let index, let pattern): return "\(ruleName(index)) (\(pattern))"
    case .list(let index, let list):
      let source = preparation.plan.lists.sources[list]
      let finding = find(name, in: list, blocks: preparation.plan.rules[index].blocks)
      let line = finding.map { ", line \($0.line): \($0.text)" } ?? ""
      return "\(ruleName(index)) (list \(source.name)\(line))"
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
    let hasLocalDNS = !route.localServers.isEmpty
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
