// SearchDomains.swift -- what the search domains that a network hands out mean for the names below them.
//
// A DHCP server may hand out any domain. So none takes a name away from the providers, but where the top-level label
// belongs to nobody on the Internet (docs/adr/0019-search-domains-take-nothing-away.md).

import DNSWire
import PublicSuffixes

/// A search domain, and what becomes of the names in it.
public struct SearchDomain: Hashable, Sendable {
  /// What becomes of the names in it.
  public enum Effect: Hashable, Sendable {
    /// They are asked of the network alone: their top-level label is nobody's.
    case networkOnly
    /// They are asked of providers and network, in the order of `localdns.search_domains`.
    case shared
    /// Nothing: anybody may register names in it.
    case publicSuffix
    /// Nothing: it lies in a zone that is answered here, or holds addresses.
    case special
  }

  /// The domain, in lower case.
  public let name: DomainName
  /// What becomes of the names in it.
  public let effect: Effect

  /// Judges a search domain.
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

  /// Judges a list: each domain once, the root left out.
  public static func judged(_ names: [DomainName]) -> [SearchDomain] {
    var domains: [SearchDomain] = []
    for name in names where !name.isRoot {
      let domain = SearchDomain(name)
      if !domains.contains(domain) { domains.append(domain) }
    }
    return domains
  }

  /// The zone that its names are in anyway: a rule about this or something deeper is stronger than the network.
  var reservedZone: DomainName? { LocalZones.zone(of: name) }

  /// Whether networks may have names there; `local` and `test` are answered here where none claims to.
  private static func isNetworks(_ zone: DomainName) -> Bool {
    SpecialZone.networkTexts.contains(zone.textWithoutDot) || ["local", "test"].contains(zone.textWithoutDot)
  }
}

/// The zones that are nobody's on the Internet.
public enum LocalZones {
  /// Whether a public name may not lead there: a name of one label, of a network, of this machine, or of a private
  /// address.
  public static func contains(_ name: DomainName) -> Bool {
    let name = name.lowercased
    return !name.isRoot && (name.labelCount == 1 || zone(of: name) != nil || endsInNumber(name))
  }

  /// The deepest of the zones that a name in lower case is in.
  static func zone(of name: DomainName) -> DomainName? {
    var found: DomainName?
    var above: DomainName? = name
    while found == nil, let candidate = above, !candidate.isRoot {
      if zones.contains(candidate) { found = candidate }
      above = candidate.parent
    }
    return found
  }

  /// Whether the last label is a number: an address, mostly.
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
