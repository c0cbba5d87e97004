// RankingSettings.swift -- which names are measured, by which probes, and how often.

import Configuration
import DNSWire
import Routing

/// The `[ranking]` section as the ranker uses it.
package struct RankingSettings: Equatable, Sendable {
  /// The section; `family_threshold` has its default if it is not used.
  package var section = Configuration().ranking
  /// Prefixes that count as private in addition to the built-in ones (`names.rebind_prefixes`).
  package var privatePrefixes: [IPPrefix] = []

  /// The default settings measure nothing.
  package init() {}

  package init(_ configuration: Configuration) {
    section = configuration.ranking
    // What has no effect must not make two settings differ.
    if section.families != .faster { section.familyThreshold = Configuration().ranking.familyThreshold }
    privatePrefixes = configuration.names.rebindPrefixes
  }

  /// Whether any name is measured.
  package var measures: Bool { !section.probe.isEmpty || section.domains.values.contains { !$0.isEmpty } }

  /// AAAA records are withheld if IPv6 fails or is slower by this much; nil to always answer both families.
  var familyThreshold: Duration? { section.families == .faster ? section.familyThreshold : nil }

  /// Whether the families of a name are compared.
  var comparesFamilies: Bool { familyThreshold != nil && measures }

  /// The kinds of probes that are used for any name.
  var allKinds: Set<ProbeKind> { Set(section.probe).union(section.domains.values.joined()) }

  /// The kinds of probes for a name, by the longest pattern of `domains` that matches it; and whether one matches.
  ///
  /// - Complexity: O(labels)
  func measures(for name: DomainName) -> (kinds: [ProbeKind], isListed: Bool) {
    let (kinds, domains) = (section.probe, section.domains)
    guard !domains.isEmpty else { return (kinds, false) }
    if let kinds = domains[.exact(name)] ?? domains[.subtree(name)] { return (kinds, true) }
    var below = name
    while let parent = below.parent {
      if let kinds = domains[.below(parent)] ?? domains[.subtree(parent)] { return (kinds, true) }
      below = parent
    }
    return (kinds, false)
  }

  /// Whether an address may be measured: a DNS answer must not make the daemon probe arbitrary hosts.
  ///
  /// - Parameter isListed: whether a pattern of `domains` matches the name. Only then may addresses be measured that
  ///   are not globally routable, such as private ones.
  func mayMeasure(_ address: IPAddress, isListed: Bool) -> Bool {
    let octets = address.octets
    guard isListed else { return !RebindFilter.isPrivate(octets) && !privatePrefixes.contains { $0.contains(address) } }
    // Link-local addresses (metadata services), multicast, the unspecified address and broadcast are never measured,
    // nor IPv6 addresses that embed such an IPv4 address.
    guard address.isIPv6 else { return RankingSettings.isHost(octets) }
    guard octets[0] != 0xFF, octets[0] != 0xFE || octets[1] & 0xC0 != 0x80, !octets.allSatisfy({ $0 == 0 }) else {
      return false
    }
    let isMapped = octets.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF])
    return (RebindFilter.embedded(in: octets) + (isMapped ? [Array(octets[12...])] : []))
      .allSatisfy(RankingSettings.isHost)
  }

  private static func isHost(_ octets: [UInt8]) -> Bool {
    !(octets[0] == 0 || octets[0] == 169 && octets[1] == 254 || octets[0] >= 224)
  }
}
