// RouteReason.swift -- explains a routing decision by checking every rule and special name in turn.
//
// Only for diagnosis: the hot path uses `RouteTable`, and tests compare the two.

import DNSWire
import Lists

/// The reason for a routing decision.
public enum RouteReason: Hashable, Sendable {
  /// A rule, by its index, and the most specific pattern of it that matches.
  case rule(Int, NamePattern)
  /// A list of a rule: the index of the rule, and that of the list in the table of lists.
  case list(Int, Int)
  /// The hosts file.
  case hosts
  /// A special name at or above the QNAME.
  case special(DomainName)
  /// A captive portal probe.
  case portal
  /// A router's own page.
  case router
  /// A search domain of the network.
  case search(DomainName)
  /// A single-label name, which may be a host of the network.
  case singleLabel
  /// An address in place of a name, or a numeric top-level label.
  case literal
  /// The default route.
  case standard

  /// Finds the reason for a question.
  ///
  /// - Parameters:
  ///   - client: who asks; nil for the daemon itself.
  ///   - hosts: the hosts file.
  ///   - isListed: whether a list has the name for a rule that blocks, or for one that does not.
  /// - Complexity: O(patterns of all rules)
  public init(
    _ name: DomainName, _ type: RecordType, from client: IPAddress? = nil, rules: [RouteRule],
    settings: SpecialNamesSettings, hosts: HostsFile, isListed: (ListUse) -> Bool = { _ in false }
  ) {
    let name = name.lowercased
    let isInHosts = hosts.answers(name, type)
    let special = isInHosts ? nil : RouteReason.special(name, type, settings)
    let depth = isInHosts ? name.labelCount : special?.ruleDepth ?? 0
    let isHostsName = hosts.answers(name, .a) || hosts.answers(name, .ptr)
    let listsCount = !isHostsName && !RouteReason.isKept(name, settings)
    for (index, rule) in rules.enumerated() where rule.isFor(TypeCategory(type)) && rule.isFor(client) {
      let fitting = rule.names.filter { $0.matches(name) && rule.mayOverride(depth, from: $0.name.labelCount) }
      if let best = fitting.max(by: { $0.name.labelCount < $1.name.labelCount }) {
        self = .rule(index, best)
        return
      }
      guard listsCount, let list = rule.lists.first(where: { isListed(ListUse(list: $0, blocks: rule.blocks)) }) else {
        continue
      }
      self = .list(index, list)
      return
    }
    self = isInHosts ? .hosts : special?.reason ?? .standard
  }

  /// Whether a name is special, so that lists do not count: a search domain of the network gives way to them.
  private static func isKept(_ name: DomainName, _ settings: SpecialNamesSettings) -> Bool {
    guard let effect = deepestZone(name, settings)?.effect else { return special(name, .a, settings) != nil }
    return effect != .search
  }

  private static func special(
    _ name: DomainName, _ type: RecordType, _ settings: SpecialNamesSettings
  ) -> (reason: RouteReason, ruleDepth: Int)? {
    if let best = deepestZone(name, settings) {
      let hasEffect = settings.searchRoute != nil && settings.networkRoute != nil
      let searched = hasEffect && settings.searchDomains.contains { $0.lowercased == best.zone.name }
      let reason: RouteReason =
        switch best.effect {
        case .search: .search(best.zone.name)
        case .portal: .portal
        case .router: .router
        case .network where searched: .search(best.zone.name)
        default: .special(best.zone.name)
        }
      return (reason, best.zone.ruleDepth)
    }
    guard settings.special, !name.isRoot else { return nil }
    if LocalZones.endsInNumber(name) || name.labelCount == 1 && isIPv6(name) { return (.literal, 1) }
    let isAddress = [.a, .aaaa, .svcb, .https].contains(type)
    return name.labelCount == 1 && isAddress ? (.singleLabel, 1) : nil
  }

  private static func deepestZone(
    _ name: DomainName, _ settings: SpecialNamesSettings
  ) -> (zone: SpecialZone, effect: SpecialEffect)? {
    var best: (zone: SpecialZone, effect: SpecialEffect)?
    for zone in SpecialZone.zones(settings) where name.isAtOrBelow(zone.name) {
      guard let effect = zone.name == name ? zone.at : zone.below,
        zone.name.labelCount >= best?.zone.name.labelCount ?? 0
      else { continue }
      best = (zone, effect)
    }
    return best
  }

  private static func isIPv6(_ name: DomainName) -> Bool {
    name.octets.dropLast().count { $0 == UInt8(ascii: ":") } >= 2
      && name.octets.dropFirst().dropLast().allSatisfy { (48...58).contains($0) || (97...102).contains($0) }
  }
}
