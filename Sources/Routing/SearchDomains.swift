// SearchDomains.swift -- the effect of a network's search domains on the names below them.
//
// A DHCP server may announce any domain. Therefore a search domain keeps names from the providers only if its top-level
// label does not exist on the Internet (docs/adr/0019-search-domains-take-no-names-away.md).

import DNSWire
import PublicSuffixes

/// A search domain and its effect.
public struct SearchDomain: Hashable, Sendable {
  /// The effect on names at or below the domain.
  public enum Effect: Hashable, Sendable {
    /// Only the network resolves them: their top-level label does not exist on the Internet.
    case networkOnly
    /// Providers and network resolve them, in the order of `localdns.search_domains`.
    case shared
    /// None: the domain is a public suffix, in which an attacker may register names.
    case publicSuffix
    /// None: the domain is in a zone that the daemon answers itself, or in a reverse zone.
    case special
  }

  /// The domain, in lower case.
  public let name: DomainName
  /// The effect on names at or below the domain.
  public let effect: Effect

  /// Determines the effect of a search domain.
  public init(_ name: DomainName) {
    let name = name.lowercased
    self.name = name
    effect =
      if let zone = LocalZones.zone(of: name) {
        SearchDomain.isNetworks(zone) ? .networkOnly : .special
      } else if name.isAtOrBelow(arpa) || LocalZones.endsInNumber(name) {
        .special
      } else if PublicSuffixes.contains(name) {
        .publicSuffix
      } else {
        .shared
      }
  }

  /// Determines the effects of a list, without duplicates and without the root.
  public static func judged(_ names: [DomainName]) -> [SearchDomain] {
    var domains: [SearchDomain] = []
    for name in names where !name.isRoot {
      let domain = SearchDomain(name)
      if !domains.contains(domain) { domains.append(domain) }
    }
    return domains
  }

  /// The reserved zone of the domain, if any: rules for this zone or deeper names override the search domain.
  var reservedZone: DomainName? { LocalZones.zone(of: name) }

  /// Whether networks may have names in the zone. Without such a network, the daemon answers `local` and `test` itself.
  private static func isNetworks(_ zone: DomainName) -> Bool {
    SpecialZone.networkTexts.contains(zone.textWithoutDot) || ["local", "test"].contains(zone.textWithoutDot)
  }
}

/// The zones that do not exist on the Internet.
public enum LocalZones {
  /// Whether a public name must not point to this name: single-label names, and names of a network, of this machine or of
  /// private addresses.
  public static func contains(_ name: DomainName) -> Bool {
    let name = name.lowercased
    return !name.isRoot && (name.labelCount == 1 || zone(of: name) != nil || endsInNumber(name))
  }

  /// The deepest of the zones that contains a name in lower case.
  static func zone(of name: DomainName) -> DomainName? {
    var found: DomainName?
    var above: DomainName? = name
    while found == nil, let candidate = above, !candidate.isRoot {
      if zones.contains(candidate) { found = candidate }
      above = candidate.parent
    }
    return found
  }

  /// Whether the last label is a number, as in an address.
  static func endsInNumber(_ name: DomainName) -> Bool {
    name.textWithoutDot.split(separator: ".").last.map { $0.utf8.allSatisfy { (48...57).contains($0) } } ?? false
  }

  private static let zones: Set<DomainName> = Set(
    (SpecialZone.networkTexts + SpecialZone.absentTexts + SpecialZone.privateReverseTexts
      + SpecialZone.emptyReverseTexts + ["localhost", "resolver.arpa", "127.in-addr.arpa"])
      .map { DomainName(text: $0)! })
}

extension DomainName {
  fileprivate var textWithoutDot: String { isRoot ? "" : String(text.dropLast()) }
}

private let arpa = DomainName(text: "arpa")!
